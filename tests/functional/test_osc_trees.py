# SPDX-License-Identifier: Apache-2.0
"""Trees and traits on the command line, on a running facade."""


from placement_rpc.osc import trees
from tests import base
from tests.functional.test_osc import FacadeTest
from tests.functional.test_osc_program import Terminal


class TreeTest(FacadeTest):

    def setUp(self):
        super().setUp()
        self.uuids = {}
        for name, parent in (("compute", None), ("numa0", "compute"), ("numa1", "compute"),
                             ("gpu", "numa0"), ("storage", None)):
            arguments = ("--parent", self.uuids[parent]) if parent else ()
            self.uuids[name] = self.run_json(
                "resource-provider", "create", name, *arguments)["uuid"]
        self.run_json("resource-provider", "set", "trait", self.uuids["gpu"],
                      "HW_GPU_API_DXVA", "HW_CPU_X86_AVX2")

    def drawn(self, *arguments, **how):
        """Return the name column of the table, without its blanks."""
        out = how.get("stdout") or Terminal()
        code, _, err = self.openstack("resource-provider", "tree", *arguments, "-c", "name",
                                      stdout=out)
        self.assertEqual(0, code, err)
        rows = [line for line in out.getvalue().splitlines() if line.startswith("|")][1:]
        return [row[2:-1].rstrip() for row in rows]

    def test_a_tree_is_drawn(self):
        expected = ["compute", "├─ numa0", "│  └─ gpu", "└─ numa1"]
        for name in ("compute", "gpu"):
            self.assertEqual(expected, self.drawn(self.uuids[name]))
        self.assertEqual([*expected, "storage"], self.drawn())

    def test_for_a_program(self):
        rows = {each["name"]: each for each in self.run_json(
            "resource-provider", "tree", self.uuids["numa1"])}
        self.assertEqual({"compute", "numa0", "numa1", "gpu"}, set(rows))
        self.assertEqual({
            "name": "gpu", "uuid": self.uuids["gpu"], "generation": 1,
            "parent_provider_uuid": self.uuids["numa0"],
            "root_provider_uuid": self.uuids["compute"],
            "traits": ["HW_CPU_X86_AVX2", "HW_GPU_API_DXVA"]}, rows["gpu"])
        self.assertIsNone(rows["compute"]["parent_provider_uuid"])

    def test_what_is_used(self):
        self.run_json("resource-provider", "set", "inventory", self.uuids["gpu"],
                      "--resource-class", "VGPU", "--total", "4")
        self.run_json("allocation", "set", base.new_uuid(), "--allocation",
                      f"rp={self.uuids['gpu']},VGPU=3")
        rows = {each["name"]: each for each in self.run_json(
            "resource-provider", "tree", self.uuids["gpu"], "--long")}
        self.assertEqual(({"VGPU": 3}, {"VGPU": 4}),
                         (rows["gpu"]["used"], rows["gpu"]["total"]))
        self.assertEqual({}, rows["compute"]["total"])

    def test_a_provider_moves(self):
        self.done_quietly("resource-provider", "update", self.uuids["numa0"], "--no-parent")
        self.assertEqual(["compute", "└─ numa1", "numa0", "└─ gpu", "storage"], self.drawn())
        self.done_quietly("resource-provider", "update", self.uuids["numa0"], "--name", "rack",
                          "--parent", self.uuids["storage"])
        self.assertEqual(["storage", "└─ rack", "   └─ gpu"], self.drawn(self.uuids["gpu"]))
        self.assertIn("loop", self.refused(
            "resource-provider", "update", self.uuids["storage"], "--parent", self.uuids["gpu"]))
        self.assertIn("--no-parent", self.refused(
            "resource-provider", "update", self.uuids["storage"]))

    def done_quietly(self, *arguments):
        code, _, err = self.openstack(*arguments)
        self.assertEqual((0, ""), (code, err))

    def test_lists_by_tree_and_trait(self):
        def names(*arguments):
            return {each["name"] for each in self.run_json(
                "resource-provider", "list", *arguments)}

        self.assertEqual({"storage"}, names("--in-tree", self.uuids["storage"]))
        self.assertEqual({"gpu"}, names("--required", "HW_GPU_API_DXVA",
                                        "--required", "HW_CPU_X86_AVX2"))
        self.assertEqual({"compute", "numa0", "numa1"}, names(
            "--in-tree", self.uuids["gpu"], "--forbidden", "HW_GPU_API_DXVA"))

    def test_a_provider_that_does_not_exist(self):
        uuid = base.new_uuid()
        self.assertIn(uuid, self.refused("resource-provider", "tree", uuid))
        self.assertIn(uuid, self.refused("resource-provider", "create", "x", "--parent", uuid))

    def test_an_older_microversion(self):
        for minor, arguments in ((14, ("tree",)), (14, ("list", "--in-tree", self.uuids["gpu"])),
                                 (18, ("list", "--required", "CUSTOM_A")),
                                 (22, ("list", "--forbidden", "CUSTOM_A")),
                                 (37, ("update", self.uuids["gpu"], "--no-parent"))):
            self.assertIn(f"1.{minor}", self.refused(
                f"--os-placement-rpc-api-version=1.{minor - 1}", "resource-provider", *arguments))


class TraitTest(FacadeTest):

    def names(self, *arguments):
        return [each["name"] for each in self.run_json(*arguments)]

    def test_a_traits_life(self):
        self.assertEqual({"name": "CUSTOM_A", "custom": True},
                         self.run_json("resource-trait", "create", "CUSTOM_A"))
        self.run_json("resource-trait", "create", "CUSTOM_A")
        self.assertEqual({"name": "HW_CPU_X86_AVX2", "custom": False},
                         self.run_json("resource-trait", "show", "HW_CPU_X86_AVX2"))
        self.assertEqual(["CUSTOM_A"], self.names("resource-trait", "list", "--prefix", "CUSTOM"))
        self.assertLess(100, len(self.names("resource-trait", "list")))
        self.assertEqual([], self.names("resource-trait", "list", "--associated"))
        self.assertIn("A", self.refused("resource-trait", "create", "A"))
        self.done("resource-trait", "delete", "CUSTOM_A")
        self.refused("resource-trait", "show", "CUSTOM_A")

    def test_of_a_provider(self):
        uuid = self.run_json("resource-provider", "create", "node")["uuid"]
        for name in ("CUSTOM_A", "CUSTOM_B"):
            self.run_json("resource-trait", "create", name)
        self.assertEqual(["CUSTOM_A", "HW_CPU_X86_AVX2"], self.names(
            "resource-provider", "set", "trait", uuid, "HW_CPU_X86_AVX2", "CUSTOM_A"))
        self.assertEqual(["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX2"], self.names(
            "resource-provider", "add", "trait", uuid, "CUSTOM_B", "CUSTOM_A"))
        self.assertEqual(["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_AVX2"], self.names(
            "resource-provider", "list", "trait", uuid))
        self.assertEqual(["CUSTOM_B"], self.names(
            "resource-provider", "delete", "trait", uuid, "CUSTOM_A", "HW_CPU_X86_AVX2"))
        self.assertEqual(["CUSTOM_B"], self.names("resource-trait", "list", "--associated"))
        self.assertIn("CUSTOM_B", self.refused("resource-trait", "delete", "CUSTOM_B"))
        self.assertIn("CUSTOM_NONE", self.refused(
            "resource-provider", "add", "trait", uuid, "CUSTOM_NONE"))
        self.assertEqual([], self.names("resource-provider", "set", "trait", uuid))
        self.refused("resource-provider", "list", "trait", base.new_uuid())


class DrawingTest(base.TestCase):

    def test_an_output_without_these_characters(self):
        self.assertEqual("|- ", trees.drawable("├─ ", "ascii"))
        self.assertEqual("   `- ", trees.drawable("   └─ ", "latin-1"))
        self.assertEqual("└─ ", trees.drawable("└─ ", None))
        self.assertEqual("│  └─ ", trees.drawable("│  └─ ", "utf-8"))

    def test_a_parent_that_is_not_in_the_list(self):
        found = list(trees.in_order([
            {"uuid": "b", "name": "b", "parent_provider_uuid": "gone"},
            {"uuid": "a", "name": "a", "parent_provider_uuid": "b"}]))
        self.assertEqual([("b", ""), ("a", "└─ ")], [
            (each["name"], lines) for each, lines in found])
