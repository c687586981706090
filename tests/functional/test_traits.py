# SPDX-License-Identifier: Apache-2.0
"""Traits, and the traits of providers."""

import os_traits
import sqlalchemy as sa

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import traits
from placement_rpc.service import conductor
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base

_GPU, _SSD = "CUSTOM_GPU", "CUSTOM_SSD"


class TraitTest(base.ContractTest):

    def names(self, **filters):
        return [each.name for each in self.api.list_traits(None, **filters).objects]

    def test_the_standard_traits_are_there_and_cannot_be_changed(self):
        standard = sorted(os_traits.get_traits())
        self.assertEqual(standard, sorted(self.names()))
        self.assertRaises(exception.TraitStandard, self.api.create_trait, None, standard[0])
        self.assertRaises(exception.TraitStandard, self.api.delete_trait, None, standard[0])

    def test_a_standard_trait_of_a_newer_library_cannot_be_deleted(self):
        self.service.database.write(lambda tx: traits.insert(tx, ["HW_OF_TOMORROW"]))
        self.assertRaises(
            exception.TraitStandard, self.api.delete_trait, None, "HW_OF_TOMORROW")

    def test_a_custom_trait_is_created_once_and_deleted_once(self):
        self.assertEqual(_GPU, self.api.create_trait(None, _GPU).name)
        self.assertRaises(exception.TraitExists, self.api.create_trait, None, _GPU)
        self.api.delete_trait(None, _GPU)
        self.assertRaises(exception.TraitNotFound, self.api.delete_trait, None, _GPU)
        self.assertEqual(_GPU, self.api.create_trait(None, _GPU).name)

    def test_a_repeated_request_has_the_first_outcome(self):
        request_id = base.new_uuid()
        self.api.create_trait(None, _GPU, request_id=request_id)
        self.assertEqual(_GPU, self.api.create_trait(None, _GPU, request_id=request_id).name)
        self.assertRaises(exception.RequestIdReused, self.api.create_trait, None, _SSD,
                          request_id=request_id)

    def test_names_that_no_custom_trait_can_have(self):
        for name in ("", "CUSTOM_", "custom_gpu", "CUSTOM_a", "CUSTOM_A\n", "CUSTOM_A ", "GPU",
                     "CUSTOM_\u00c4", "CUSTOM_" + "A" * 249, 7, ["CUSTOM_A"]):
            self.assertRaises(exception.InvalidInput, self.api.create_trait, None, name)
        longest = "CUSTOM_" + "A" * 248
        self.api.create_trait(None, longest)
        self.assertEqual([longest], self.names(prefix="CUSTOM_"))

    def test_lists(self):
        for name in (_SSD, _GPU, "CUSTOM_GPU2"):
            self.api.create_trait(None, name)
        uuid = self.provider()
        self.api.set_provider_traits(None, uuid, [_GPU])
        self.assertEqual([_GPU, "CUSTOM_GPU2", _SSD], self.names(prefix="CUSTOM_"))
        # An underscore stands for itself, and so does the case of letters.
        self.assertEqual([], self.names(prefix="CUSTOM%"))
        self.assertEqual([], self.names(prefix="_USTOM_"))
        self.assertEqual([], self.names(prefix="custom_"))
        self.assertEqual([_SSD], self.names(names=[_SSD, "CUSTOM_NONE"]))
        self.assertEqual([], self.names(names=[]))
        self.assertEqual([_GPU], self.names(associated=True))
        self.assertEqual([_SSD], self.names(associated=False, names=[_GPU, _SSD]))
        self.assertEqual([_GPU], self.names(prefix="CUSTOM_", limit=1))
        self.assertEqual([_SSD], self.names(prefix="CUSTOM_", marker="CUSTOM_GPU2"))
        self.assertRaises(exception.InvalidInput, self.names, associated="yes")
        self.assertRaises(exception.InvalidInput, self.names, limit=0)
        self.assertRaises(exception.InvalidInput, self.names, names="CUSTOM_GPU")

    def test_a_trait_that_a_provider_has_is_not_deleted(self):
        uuid = self.provider()
        self.api.create_trait(None, _GPU)
        self.api.set_provider_traits(None, uuid, [_GPU])
        self.assertRaises(exception.TraitInUse, self.api.delete_trait, None, _GPU)
        self.api.set_provider_traits(None, uuid, [])
        self.api.delete_trait(None, _GPU)


class ProviderTraitsTest(base.ContractTest):

    def setUp(self):
        super().setUp()
        self.uuid = self.provider()
        for name in (_GPU, _SSD):
            self.api.create_trait(None, name)

    def set(self, *traits, **values):
        return self.api.set_provider_traits(None, self.uuid, traits, **values)

    def test_they_are_replaced_and_raise_the_generation(self):
        self.assertEqual(([_GPU, _SSD], 1), _told(self.set(_SSD, _GPU)))
        self.assertEqual(([_GPU], 2), _told(self.set(_GPU)))
        self.assertEqual(([_GPU], 2), _told(self.api.get_provider_traits(None, self.uuid)))
        self.assertEqual(2, self.generation(self.uuid))

    def test_the_same_set_changes_nothing(self):
        self.set(_GPU, _SSD)
        self.assertEqual(([_GPU, _SSD], 1), _told(self.set(_SSD, _GPU, _GPU)))
        self.set()
        self.assertEqual(([], 2), _told(self.set()))

    def test_what_is_refused_changes_nothing(self):
        self.set(_GPU)
        error = self.assertRaises(
            exception.TraitNotFound, self.set, _SSD, "CUSTOM_B", "CUSTOM_A", "CUSTOM_A")
        self.assertIn("CUSTOM_A, CUSTOM_B", error.text)
        self.assertRaises(exception.ConcurrentUpdate, self.set, _SSD, generation=0)
        # A stale generation is a conflict even if the traits are the same.
        self.assertRaises(exception.ConcurrentUpdate, self.set, _GPU, generation=7)
        for names in (["a"], "CUSTOM_GPU", [None], [7]):
            self.assertRaises(
                exception.InvalidInput, self.api.set_provider_traits, None, self.uuid, names)
        self.assertEqual(([_GPU], 1), _told(self.api.get_provider_traits(None, self.uuid)))

    def test_a_repeated_request_has_the_first_outcome(self):
        request_id = base.new_uuid()
        self.set(_GPU, generation=0, request_id=request_id)
        self.set(_SSD)
        # The generation is a precondition, and no part of what is asked for.
        for generation in (0, 2, None):
            self.assertEqual(([_GPU], 1), _told(self.set(
                _GPU, generation=generation, request_id=request_id)))
        self.assertRaises(exception.RequestIdReused, self.set, _SSD, request_id=request_id)
        self.assertEqual(([_SSD], 2), _told(self.api.get_provider_traits(None, self.uuid)))

    def test_they_go_with_their_provider(self):
        self.set(_GPU)
        self.api.delete_provider(None, self.uuid)
        self.assertRaises(
            exception.ProviderNotFound, self.api.get_provider_traits, None, self.uuid)
        self.assertRaises(exception.ProviderNotFound, self.set, _GPU)
        self.api.delete_trait(None, _GPU)


def _told(found):
    return found.traits, found.generation


class StartTest(base.TestCase):

    def test_a_conductor_inserts_the_standard_traits_that_are_missing(self):
        """Its library can be newer than at the last upgrade of the schema."""
        running = self.useFixture(placement_fixtures.RunningService(transport="local"))
        lost = sorted(os_traits.get_traits())[:3]
        running.database.write(lambda tx: tx.execute(
            sa.delete(models.traits).where(models.traits.c.name.in_(lost))))
        self.assertEqual([], running.api.list_traits(None, names=lost).objects)
        started = conductor.Conductor(running.conf, worker=1)
        self.addCleanup(started.stop)
        started.start()
        self.assertEqual(
            lost, [each.name for each in running.api.list_traits(None, names=lost).objects])
