# SPDX-License-Identifier: Apache-2.0
"""Custom resource classes: the fifth specification."""

import os_resource_classes

from placement_rpc import exception
from tests import base


class ResourceClassTest(base.ContractTest):

    def names(self, **page):
        return [each.name for each in self.api.resource_class_list(None, **page).objects]

    def test_standard_and_custom_ones_are_listed_by_name(self):
        self.api.resource_class_create(None, "CUSTOM_BAREMETAL_GOLD")
        expected = sorted([*os_resource_classes.STANDARDS, "CUSTOM_BAREMETAL_GOLD",
                           "CUSTOM_PCI_SRIOV_PF"])
        self.assertEqual(expected, self.names())
        self.assertEqual(expected[:3], self.names(limit=3))
        self.assertEqual(expected[3:5], self.names(marker=expected[2], limit=2))

    def test_a_custom_class_is_used_like_any_other(self):
        self.api.resource_class_create(None, "CUSTOM_BAREMETAL_GOLD")
        uuid = self.provider(CUSTOM_BAREMETAL_GOLD=1)
        self.claim({uuid: {"CUSTOM_BAREMETAL_GOLD": 1}})
        self.assertEqual({"CUSTOM_BAREMETAL_GOLD": 1}, self.used(uuid))
        self.assertEqual([], self.find({"CUSTOM_BAREMETAL_GOLD": 1}))

    def test_the_prefix_is_kept_to(self):
        for name in ("GOLD", "CUSTOM_", "CUSTOM_gold", "custom_GOLD", "CUSTOM_GOLD!", "",
                     "CUSTOM_" + "A" * 249):
            self.assertRaises(
                exception.InvalidInput, self.api.resource_class_create, None, name)
        self.api.resource_class_create(None, "CUSTOM_" + "A" * 248)

    def test_a_name_is_used_once(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.assertRaises(exception.ResourceClassExists, self.api.resource_class_create, None,
                          "CUSTOM_GOLD")

    def test_standard_ones_are_protected(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        for name in ("VCPU", "CUSTOM_PCI_SRIOV_PF", "PCI_SRIOV_PF"):
            for call, *arguments in (
                    (self.api.resource_class_delete, name),
                    (self.api.resource_class_rename, name, "CUSTOM_SILVER"),
                    (self.api.resource_class_rename, "CUSTOM_GOLD", name)):
                self.assertRaises(exception.ResourceClassStandard, call, None, *arguments)
        self.assertRaises(
            exception.ResourceClassStandard, self.api.resource_class_create, None, "VCPU")
        # nova makes sure that it exists, as of any custom class.
        for name in ("CUSTOM_PCI_SRIOV_PF", "PCI_SRIOV_PF"):
            self.assertRaises(
                exception.ResourceClassExists, self.api.resource_class_create, None, name)

    def test_a_rename_keeps_what_is_of_the_class(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        uuid = self.provider(CUSTOM_GOLD=4)
        consumer, _ = self.claim({uuid: {"CUSTOM_GOLD": 3}})
        self.api.resource_class_rename(None, "CUSTOM_GOLD", "CUSTOM_SILVER")
        self.assertEqual({uuid: {"CUSTOM_SILVER": 3}}, self.held(consumer))
        self.assertRaises(exception.ResourceClassNotFound, self.claim,
                          {uuid: {"CUSTOM_GOLD": 1}})
        self.claim({uuid: {"CUSTOM_SILVER": 1}})

    def test_a_rename_to_a_name_in_use(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        self.api.resource_class_create(None, "CUSTOM_SILVER")
        self.assertRaises(exception.ResourceClassExists, self.api.resource_class_rename, None,
                          "CUSTOM_GOLD", "CUSTOM_SILVER")

    def test_what_is_not_there(self):
        for call, *arguments in (
                (self.api.resource_class_get, "CUSTOM_GOLD"),
                (self.api.resource_class_delete, "CUSTOM_GOLD"),
                (self.api.resource_class_rename, "CUSTOM_GOLD", "CUSTOM_SILVER")):
            self.assertRaises(exception.ResourceClassNotFound, call, None, *arguments)

    def test_one_in_use_is_not_deleted(self):
        self.api.resource_class_create(None, "CUSTOM_GOLD")
        uuid = self.provider(CUSTOM_GOLD=4)
        self.assertRaises(exception.ResourceClassInUse, self.api.resource_class_delete, None,
                          "CUSTOM_GOLD")
        self.api.set_inventory(None, uuid, [])
        self.api.resource_class_delete(None, "CUSTOM_GOLD")
        self.assertNotIn("CUSTOM_GOLD", self.names())
