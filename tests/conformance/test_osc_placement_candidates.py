# SPDX-License-Identifier: Apache-2.0
"""osc-placement, unchanged: ``allocation candidate list``."""

from tests import base
from tests.conformance.osc_case import CommandTest, since


class CandidatesTest(CommandTest):
    """Each of its options, from the version on that it needs."""

    scenarios = since("1.10")

    def setUp(self):
        super().setUp()
        # No other provider has it, so that no other is among the candidates.
        self.custom = self.resource_class()

    def resource_class(self):
        """Return the name of a new class."""
        name = f"CUSTOM_{base.new_uuid().upper().replace('-', '_')}"
        self.run_command("resource class set", name)
        return name

    def host(self, total=4, parent=None, resource_class=None):
        """Return the uuid of a new provider of the class."""
        uuid = self.provider(**{resource_class or self.custom: total})
        if parent:
            name = self.show("resource provider show", uuid)["name"]
            self.show("resource provider set", uuid, "--name", name,
                      "--parent-provider", parent)
        return uuid

    def candidates(self, *options):
        """Return the candidates that the command lists.

        :returns: list of dicts of provider uuid to the provider's row
        """
        found = {}
        for row in self.show("allocation candidate list", *options):
            found.setdefault(row["#"], {})[row["resource provider"]] = row
        return [found[number] for number in sorted(found)]

    def providers(self, *options):
        """Return the sets of providers of the candidates, sorted."""
        return sorted(sorted(each) for each in self.candidates(
            "--resource", f"{self.custom}=1", *options))

    def too_old(self, *options):
        self.refused("requires at least|is not supported|Operation or argument",
                     "allocation candidate list", "--resource", f"{self.custom}=1", *options)

    def test_amounts(self):
        one, other = self.host(), self.host(2)
        self.take(base.new_uuid(), f"rp={one},{self.custom}=1")
        self.assertEqual(sorted([[one], [other]]), self.providers())
        found, = self.candidates("--resource", f"{self.custom}=3")
        row = found[one]
        self.assertEqual((f"{self.custom}=3", f"{self.custom}=1/4"), (
            row["allocation"], row["inventory used/capacity"]))
        self.assertEqual(self.minor >= 17, "traits" in row)
        self.assertEqual([], self.candidates("--resource", f"{self.custom}=4"))

    def test_what_is_listed_can_be_allocated(self):
        self.host()
        found, = self.candidates("--resource", f"{self.custom}=3")
        uuid, = found
        rows = self.take(base.new_uuid(), f"rp={uuid},{found[uuid]['allocation']}")
        self.assertEqual([uuid], [row["resource_provider"] for row in rows])
        self.assertEqual([], self.candidates("--resource", f"{self.custom}=3"))

    def test_refused(self):
        for options, words in (
                ((), "At least one --resource"), (("--resource", "VCPU"), "must be of form"),
                (("--resource", "VCPU=x"), r"expected positive integer amount.*\(HTTP 400\)"),
                (("--resource", "VCPU=0"), r"requires amount >= 1.*\(HTTP 400\)"),
                (("--resource", "CUSTOM_NONE=1"), r"Invalid resource class.*\(HTTP 400\)")):
            self.refused(words, "allocation candidate list", *options)

    def test_a_limit(self):
        uuids = [self.host(), self.host(), self.host()]
        if self.minor < 16:
            self.too_old("--limit", "2")
            return
        found = self.providers("--limit", "2")
        self.assertEqual(2, len(found))
        self.assertLess({uuid for each in found for uuid in each}, set(uuids))
        self.assertEqual(3, len(self.providers("--limit", "99999999999")))
        self.refused(r"\(HTTP 400\)", "allocation candidate list", "--resource", "VCPU=1",
                     "--limit", "-1")

    def test_traits(self):
        both, one, none = self.host(), self.host(), self.host()
        first, second = self.trait(), self.trait()
        self.set_traits(both, first, second)
        self.set_traits(one, first)
        if self.minor < 17:
            self.too_old("--required", first)
            return
        self.assertEqual(sorted([[both], [one]]), self.providers("--required", first))
        self.assertEqual([[both]], self.providers("--required", first, "--required", second))
        row = self.candidates("--resource", f"{self.custom}=1", "--required", second)[0][both]
        self.assertEqual({first, second}, set(row["traits"].split(",")))
        self.refused(r"\(HTTP 400\)", "allocation candidate list", "--resource", "VCPU=1",
                     "--required", "CUSTOM_NONE")
        if self.minor >= 22:
            self.assertEqual(sorted([[one], [none]]), self.providers("--forbidden", second))
        if self.minor >= 39:
            self.assertEqual(sorted([[both], [one]]),
                             self.providers("--required", f"{first},{second}"))

    def test_aggregates(self):
        one, other, aggregate, second = self.host(), self.host(), base.new_uuid(), base.new_uuid()
        for uuid, names in ((one, (aggregate, second)), (other, (aggregate,))):
            self.show("resource provider aggregate set", uuid, *(
                part for name in names for part in ("--aggregate", name)), *(
                    ["--generation", str(self.generation(uuid))] if self.minor >= 19 else []))
        if self.minor < 21:
            self.too_old("--member-of", aggregate)
            return
        self.assertEqual(sorted([[one], [other]]), self.providers("--member-of", aggregate))
        self.assertEqual([[one]], self.providers("--member-of", second))
        self.assertEqual([[one]], self.providers("--aggregate-uuid", second))
        self.assertEqual([], self.providers("--member-of", base.new_uuid()))
        if self.minor >= 24:
            self.assertEqual([[one]], self.providers(
                "--member-of", f"{aggregate},{base.new_uuid()}", "--member-of", second))

    def test_groups(self):
        root, gpu = self.host(), self.resource_class()
        if self.minor < 25:
            self.too_old("--group", "1", "--resource", f"{gpu}=1")
            return
        left, right = (self.host(2, root, gpu) for _ in range(2))
        trait = self.trait()
        self.set_traits(right, trait)
        group = ["--group", "1", "--resource", f"{gpu}=1"]
        nested = self.minor >= 29
        self.assertEqual(sorted([sorted([root, left]), sorted([root, right])]) if nested else [],
                         self.providers(*group))
        self.assertEqual([sorted([root, right])] if nested else [],
                         self.providers(*group, "--required", trait))
        second = ["--group", "2", "--resource", f"{gpu}=1", "--group-policy"]
        self.assertEqual([sorted([root, left, right])] * 2 if nested else [],
                         self.providers(*group, *second, "isolate"))
        self.assertEqual(4 if nested else 0, len(self.providers(*group, *second, "none")))
