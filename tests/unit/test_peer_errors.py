# SPDX-License-Identifier: Apache-2.0
"""Codes and words of errors on the addresses of the peer's API."""

import string

import testscenarios
from placement import errors as peer

from placement_rpc import exception
from placement_rpc.http import errors, peer_errors, routes
from tests import base

_ONE = "/resource_providers/{uuid}"
_INVENTORY = f"{_ONE}/inventories/{{resource_class}}"


class CodeTest(testscenarios.WithScenarios, base.TestCase):
    """The code is the peer's from 1.23 on; before, and elsewhere, it is this project's."""

    scenarios = [(f"{method} {address} {error.code}", {
        "request": (method, address), "error": error, "code": code})
        for method, address, error, code in (
            ("GET", _ONE, exception.ProviderNotFound(), "placement.undefined_code"),
            ("POST", "/resource_providers", exception.ProviderExists(),
             "placement.duplicate_name"),
            ("PUT", f"{_ONE}/inventories", exception.InventoryInUse(),
             "placement.inventory.inuse"),
            ("DELETE", _INVENTORY, exception.InventoryInUse(), "placement.concurrent_update"),
            ("POST", f"{_ONE}/inventories", exception.InventoryExists(),
             "placement.concurrent_update"),
            ("PUT", "/allocations/{consumer_uuid}", exception.ConsumerConflict(),
             "placement.concurrent_update"),
            ("PUT", "/allocations/{consumer_uuid}", exception.StoreBusy(),
             "placement.concurrent_update"),
            ("PUT", f"{_ONE}/traits", exception.StoreBusy(), "placement.concurrent_update"),
            ("PUT", "/allocations/{consumer_uuid}", exception.CapacityExceeded(),
             "placement.undefined_code"),
            ("DELETE", "/traits/{name}", exception.TraitInUse(), "placement.undefined_code"),
            (None, None, errors.AddressNotFound(), "placement.undefined_code"))]

    def test_code(self):
        self.assertEqual(self.code, peer_errors.code(*self.request, (1, 23), self.error))
        self.assertEqual(self.error.code, peer_errors.code(*self.request, (1, 22), self.error))
        for address in ("/events", "/resource_pools/{uuid}"):
            self.assertEqual(self.error.code, peer_errors.code(
                self.request[0], address, (1, 39), self.error))


class OwnCodeTest(base.TestCase):

    def test_what_the_peer_does_not_have_keeps_its_code(self):
        for error in (exception.RequestIdReused(), exception.PreconditionFailed(),
                      exception.ServiceUnavailable(), exception.MessageTooLarge()):
            self.assertEqual(error.code, peer_errors.code("PUT", _ONE, (1, 39), error))

    def test_the_codes_are_all_those_of_the_peer(self):
        known = {value for name, value in vars(peer).items() if name.isupper()}
        # That one only POST /reshaper answers, and for one of its reasons.
        known.remove(peer.RESOURCE_PROVIDER_NOT_FOUND)
        self.assertEqual(known, {code for code in known if peer_errors.code(
            "GET", _ONE, (1, 39), _of_code(code)) == code})


def _of_code(code):
    error = exception.Conflict()
    error.code = code
    return error


class CollisionTest(base.TestCase):
    """Clients of the peer repeat a request that met concurrent writers in every attempt."""

    def test_of_changes_that_the_peer_refuses_so(self):
        error = exception.StoreBusy(method="claim_allocations", attempts=7)
        for request in (("PUT", "/allocations/{consumer_uuid}"), ("POST", "/allocations"),
                        ("POST", "/reshaper"), ("PUT", f"{_ONE}/inventories"),
                        ("DELETE", _INVENTORY), ("PUT", f"{_ONE}/aggregates"),
                        ("PUT", f"{_ONE}/traits")):
            self.assertEqual(409, peer_errors.status(*request, error))
            words = peer_errors.detail(*request, {"uuid": "p"}, error)
            # Of nova up to Queens, which knew no codes.
            self.assertIn("concurrently updated", words)
            self.assertIn("7 attempts", words)
            # nova gives up where the consumer has changed.
            self.assertNotIn("consumer generation conflict", words)

    def test_others_are_503(self):
        error = exception.StoreBusy(method="create_provider", attempts=7)
        for request in (("POST", "/resource_providers"), ("PUT", "/traits/{name}"),
                        ("GET", "/allocation_candidates"), ("POST", "/resource_pools")):
            self.assertEqual(503, peer_errors.status(*request, error))
            self.assertEqual(error.code, peer_errors.code(*request, (1, 39), error))


class WordsTest(base.TestCase):

    def test_every_entry_is_about_a_route(self):
        known = {(route.method, route.path) for route in routes.ROUTES}
        self.assertEqual(set(), {route for route, _ in peer_errors.TABLE} - known)

    def test_every_entry_names_values_that_there_are(self):
        """Those of the error's message, or parts of the address."""
        for ((_, address), error), entry in peer_errors.TABLE.items():
            given = {"text", *_names(error.message), *_names(address)}
            self.assertEqual(set(), set(_names(entry.words)) - given, entry)

    def test_words_are_filled(self):
        error = exception.InventoryNotFound(provider="p", resource_class="VCPU")
        self.assertEqual("No inventory of class VCPU for p", peer_errors.detail(
            "GET", _INVENTORY, {"uuid": "p", "resource_class": "VCPU"}, error))
        self.assertEqual(error.text, peer_errors.detail("GET", "/events", {}, error))

    def test_no_inventory_is_told_from_no_room(self):
        request = ("PUT", "/allocations/{consumer_uuid}", {})
        values = {"provider": "p", "resource_class": "VCPU", "requested": 3, "free": 0}
        for capacity, words in ((0, "Inventory for 'VCPU' on resource provider 'p' invalid."),
                                (2, "The requested amount would exceed the capacity.")):
            self.assertIn(words, peer_errors.detail(
                *request, exception.CapacityExceeded(capacity=capacity, **values)))


def _names(template):
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]
