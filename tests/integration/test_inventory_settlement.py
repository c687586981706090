# SPDX-License-Identifier: Apache-2.0
"""Inventories of many providers, set in one transaction or one after the other."""

import json
import time

import fixtures
import hypothesis
import sqlalchemy as sa
import testscenarios
from hypothesis import strategies

from placement_rpc import exception
from placement_rpc.accounting import batch
from placement_rpc.accounting.idempotency import Request
from placement_rpc.accounting.inventory_batch import InventoryReplacement
from placement_rpc.db import models
from placement_rpc.db.queries import claims, resource_classes
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_CLASSES = ("VCPU", "MEMORY_MB", "CUSTOM_GOLD", "CUSTOM_NOT_THERE")
_UUIDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(4)]

_inventories = strategies.dictionaries(
    strategies.sampled_from(_CLASSES), strategies.integers(1, 4), max_size=3)
_reports = strategies.lists(strategies.tuples(
    strategies.sampled_from(_UUIDS), _inventories, strategies.sampled_from(
        [None, None, None, 1, 2, 3]), strategies.integers(0, 30)), min_size=1, max_size=12)


def _asked(number, uuid, totals, generation=None, deadline=None):
    inventories = [base.inventory(name, total) for name, total in totals.items()]
    return InventoryReplacement(Request.of(f"report-{number}", "set_inventory", {
        "uuid": uuid, "totals": totals, "at": generation}), uuid, inventories, generation,
        deadline)


class _Service(placement_fixtures.RunningService):
    """A service with three providers, one of them in use; the fourth uuid has no provider."""

    def _setUp(self):
        super()._setUp()
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        for number, uuid in enumerate(_UUIDS[:3]):
            self.api.create_provider(None, f"node {number}", uuid)
            self.api.set_inventory(None, uuid, [
                base.inventory("VCPU", 3), base.inventory("MEMORY_MB", 2)])
        self.api.claim_allocations(None, base.claim({_UUIDS[0]: {"VCPU": 2}}))

    def settle(self, *asked):
        return [(None if each.result is None else self.plain(each.result),
                 each.error and each.error.code, each.replayed)
                for each in batch.settle(self.database, asked)]

    @staticmethod
    def plain(result):
        return result.generation, [
            (each.resource_class, each.total, each.used) for each in result.objects]

    def state(self):
        """Everything that is stored, without times and ids that differ from run to run."""
        with self.database.reader() as tx:
            events = []
            for row in tx.execute(sa.select(models.events.c.event_type, models.events.c.payload,
                                            models.events.c.touched).order_by(
                                                models.events.c.id)):
                data = json.loads(row.payload)["placement_object.data"]
                for name in ("event_id", "occurred_at", "position"):
                    data.pop(name)
                if str(data["request_id"]).startswith("report-"):
                    events.append((row.event_type, data, row.touched))
            providers, inventories = models.resource_providers, models.inventories
            return (
                sorted(tx.execute(sa.select(
                    providers.c.uuid, providers.c.generation)).all()),
                sorted(tx.execute(sa.select(
                    providers.c.uuid, inventories.c.resource_class_id, inventories.c.total,
                    inventories.c.capacity, inventories.c.used).join_from(
                        inventories, providers)).all()),
                sorted((row.request_id, self._without_time(row.outcome)) for row in tx.execute(
                    sa.select(models.requests.c.request_id, models.requests.c.outcome).where(
                        models.requests.c.request_id.startswith("report-")))),
                events)

    @staticmethod
    def _without_time(outcome):
        found = json.loads(outcome)
        found.get("result", {}).get("placement_object.data", {}).pop("updated_at", None)
        return json.dumps(found, sort_keys=True)


class InventorySettlementTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [("SQLite", {"kind": None}), ("PostgreSQL", {"kind": "postgresql"}),
                 ("MariaDB", {"kind": "mariadb"})]
    time_limit = 240

    def make(self):
        return self.useFixture(_Service(
            transport="local", database_url=self.kind and servers.new_database(self.kind)))

    def test_together_is_as_one_after_the_other(self):
        together, singly = self.make(), self.make()
        numbers = iter(range(10 ** 9))

        @hypothesis.settings(max_examples=25 if self.kind else 60, deadline=None, database=None,
                             derandomize=True, suppress_health_check=list(
                                 hypothesis.HealthCheck))
        @hypothesis.given(_reports)
        def check(reports):
            first = next(numbers) * 100
            asked = [(first + number, *report[:3]) for number, report in enumerate(reports)]
            # One in thirty is delivered a second time.
            asked += [asked[0]] if reports[0][3] == 0 else []
            self.assertEqual(
                [singly.settle(_asked(*each))[0] for each in asked],
                together.settle(*(_asked(*each) for each in asked)))
            self.assertEqual(singly.state(), together.state())

        check()

    def test_one_that_is_refused_leaves_the_others_alone(self):
        service = self.make()
        done = service.settle(
            _asked(1, _UUIDS[1], {"VCPU": 9}), _asked(2, _UUIDS[3], {"VCPU": 9}),
            _asked(3, _UUIDS[0], {"MEMORY_MB": 9}), _asked(4, _UUIDS[0], {"VCPU": 1}),
            _asked(5, _UUIDS[2], {"CUSTOM_NOT_THERE": 1}),
            _asked(6, _UUIDS[2], {"VCPU": 9}, generation=7),
            _asked(7, _UUIDS[2], {"VCPU": 9}, deadline=time.time() - 1),
            _asked(8, _UUIDS[2], {"VCPU": 3, "MEMORY_MB": 2}))
        self.assertEqual(
            [None, "placement.resource_provider.not_found", "placement.inventory.inuse",
             "placement.inventory.capacity_conflict", "placement.resource_class.not_found",
             "placement.concurrent_update", "placement.request.expired", None],
            [code for _, code, _ in done])
        self.assertEqual((2, [("VCPU", 9, 0)]), done[0][0])
        self.assertEqual((1, [("VCPU", 3, 0), ("MEMORY_MB", 2, 0)]), done[7][0])
        # An expired request has no outcome: it may be repeated.
        self.assertRaises(exception.RequestNotFound, service.api.get_request_result, None,
                          "report-7")
        self.assertEqual("placement.inventory.inuse", service.api.get_request_result(
            None, "report-3").outcome["error"]["code"])

    def test_a_class_that_goes_and_comes_back_in_one_transaction(self):
        service = self.make()
        done = service.settle(_asked(1, _UUIDS[1], {"VCPU": 3}), _asked(
            2, _UUIDS[1], {"VCPU": 3, "MEMORY_MB": 7}), _asked(3, _UUIDS[1], {"CUSTOM_GOLD": 1}))
        self.assertEqual([
            (2, [("VCPU", 3, 0)]), (3, [("VCPU", 3, 0), ("MEMORY_MB", 7, 0)]),
            (4, [("CUSTOM_GOLD", 1, 0)])], [result for result, _, _ in done])
        self.assertEqual(
            [(1, 2), (2, 3), (3, 4), (3, 4)],
            [(data["previous_generation"], data["generation"])
             for _, data, _ in service.state()[3][-4:]])
        self.assertEqual(["CUSTOM_GOLD"], [
            each.resource_class for each in service.api.get_inventory(None, _UUIDS[1]).objects])

    def test_the_candidates_follow(self):
        service = self.make()
        service.settle(*(_asked(number, uuid, {"CUSTOM_GOLD": 4})
                         for number, uuid in enumerate(_UUIDS[1:3])))
        found = service.api.get_by_request(None, ResourceRequest(resources={"CUSTOM_GOLD": 4}))
        self.assertEqual(set(_UUIDS[1:3]), {each.uuid for each in found.objects})


class MeanwhileTest(testscenarios.WithScenarios, base.TestCase):
    """Concurrent changes while inventories are set."""

    scenarios = [("PostgreSQL", {"kind": "postgresql"}), ("MariaDB", {"kind": "mariadb"})]

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(_Service(
            transport="local", database_url=servers.new_database(self.kind)))

    def test_a_class_is_renamed_between_the_read_and_the_write(self):
        """No inventory, answer or event has the old name of a renamed class."""
        service = self.service
        service.settle(_asked(1, _UUIDS[1], {"CUSTOM_GOLD": 1}))
        ids, to_rename = resource_classes.ids, ["CUSTOM_GOLD"]

        def read(tx, names):
            found = ids(tx, names)
            if to_rename:
                service.api.resource_class_rename(None, to_rename.pop(), "CUSTOM_SILVER")
            return found

        self.useFixture(fixtures.MockPatchObject(resource_classes, "ids", read))
        self.assertEqual(
            [(None, "placement.resource_class.not_found", False),
             ((3, [("VCPU", 5, 0)]), None, False)],
            service.settle(_asked(2, _UUIDS[1], {"CUSTOM_GOLD": 7}),
                           _asked(3, _UUIDS[1], {"VCPU": 5})))
        self.assertEqual(["inventory.delete", "inventory.create"],
                         [kind for kind, _, _ in service.state()[3][-2:]])
        self.assertEqual("CUSTOM_SILVER", service.state()[3][-2][1]["inventories"][0][
            "placement_object.data"]["resource_class"])

    def test_an_expired_request_waits_for_no_lock(self):
        with self.service.database.writer() as tx:
            claims.lock_providers(tx, [_UUIDS[1]])
            done = self.service.settle(
                _asked(1, _UUIDS[1], {"VCPU": 9}, deadline=time.time() - 1),
                _asked(2, _UUIDS[2], {"VCPU": 9}))
        self.assertEqual(["placement.request.expired", None], [code for _, code, _ in done])
