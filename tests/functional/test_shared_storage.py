# SPDX-License-Identifier: Apache-2.0
"""The script that keeps the inventory of a shared storage pool up to date."""

import json
import os
import pty
import threading
from unittest import mock

import fixtures

from tests import base
from tests.functional.shared_storage_case import NAME, SharedStorageCase


class PoolTest(SharedStorageCase):

    def test_the_scenario_of_the_specification(self):
        aggregate = base.new_uuid()
        provider = self.create(
            100000, 1000, "--aggregate-uuid", aggregate, "--min-unit", "50", "--max-unit",
            "10000", "--step-size", "10", "--allocation-ratio", "1.0")
        self.assertEqual({"total": 100000, "reserved": 1000, "min_unit": 50, "max_unit": 10000,
                          "step_size": 10, "allocation_ratio": 1.0}, self.inventory(provider))
        self.assertEqual([aggregate], self.ask(
            "GET", f"/resource_providers/{provider}/aggregates")["aggregates"])
        self.assertEqual([NAME], [each["name"] for each in self.providers()])

    def test_what_has_not_changed_is_not_written(self):
        aggregate = base.new_uuid()
        settings = ("--aggregate-uuid", aggregate, "--allocation-ratio", "1.1")
        provider = self.create(500, 20, *settings)
        before = self.generation(provider)
        writes = self.useFixture(fixtures.MockPatchObject(self.script.Placement, "write")).mock
        for identity in (["--name", NAME], ["--uuid", provider], ["--name", NAME, "--create"]):
            said, _ = self.run_script(*identity, *settings)
            self.assertEqual(({}, [], False),
                             (said["changes"], said["aggregates_added"], said["created"]))
        self.assertEqual((before, 0), (self.generation(provider), writes.call_count))

    def test_what_is_allocated_is_not_reserved_too(self):
        provider = self.create(500, 20)
        self.claim(provider, 100)
        for taken, reserved in ((120, 20), (119.5, 20), (119, 19), (60, 0), (500, 400)):
            self.mount(500, taken)
            said, _ = self.run_script("--uuid", provider)
            self.assertEqual((reserved, 100), (self.inventory(provider)["reserved"],
                                               said["used"]), taken)

    def test_it_never_promises_what_is_not_there(self):
        provider = self.create(500.9, 20.1)
        self.assertEqual((500, 21), tuple(
            self.inventory(provider)[name] for name in ("total", "reserved")))
        self.mount(500.9, 0.001)
        self.run_script("--uuid", provider, "--minimum-reserved", "50")
        self.assertEqual(50, self.inventory(provider)["reserved"])

    def test_a_full_share(self):
        provider = self.create(500, 500)
        self.assertEqual(499, self.inventory(provider)["reserved"])
        self.mount(500, 100)
        self.run_script("--uuid", provider)
        self.claim(provider, 300)
        self.mount(500.5, 500.5)
        self.run_script("--uuid", provider)
        self.assertEqual(200, self.inventory(provider)["reserved"])

    def test_what_others_set_stays(self):
        provider = self.create(500, 20, "--max-unit", "100")
        self.ask("POST", f"/resource_providers/{provider}/inventories",
                 {"resource_class": "IPV4_ADDRESS", "total": 254})
        other, ours = base.new_uuid(), base.new_uuid()
        self.ask("PUT", f"/resource_providers/{provider}/aggregates", [other])
        self.mount(900, 20)
        said, _ = self.run_script("--uuid", provider, "--aggregate-uuid", ours)
        self.assertEqual(({"total": [500, 900]}, [ours]),
                         (said["changes"], said["aggregates_added"]))
        self.assertEqual(100, self.inventory(provider)["max_unit"])
        self.assertIn("IPV4_ADDRESS", self.inventories(provider)["inventories"])
        self.assertEqual({other, ours}, set(self.ask(
            "GET", f"/resource_providers/{provider}/aggregates")["aggregates"]))

    def test_a_claim_between_reading_and_writing(self):
        provider = self.create(500, 20)
        before = self.generation(provider)
        # What is measured first is only whether there is a mount.
        claims = iter((lambda: None, lambda: self.claim(provider, 15)))
        self.mount(600, 20)
        self.meanwhile = lambda: next(claims, lambda: None)()
        said, _ = self.run_script("--uuid", provider)
        self.assertEqual(({"total": [500, 600], "reserved": [20, 5]}, 15),
                         (said["changes"], said["used"]))
        self.assertEqual(before + 2, self.generation(provider))

    def test_a_change_that_always_conflicts_ends_with_an_error(self):
        provider = self.create(500, 20)
        self.useFixture(fixtures.MockPatchObject(self.script, "ATTEMPTS", 3))
        self.mount(600, 20)
        self.meanwhile = lambda: self.claim(provider, 1)
        _, words = self.run_script("--uuid", provider, code=1)
        self.assertIn("others changed the provider 3 times", words)
        self.assertEqual(500, self.inventory(provider)["total"])

    def test_a_share_that_has_become_too_small(self):
        provider = self.create(500, 20)
        self.claim(provider, 300)
        self.mount(200, 20)
        lack = "300 GiB are allocated of a capacity of 200 GiB"
        self.assertIn(lack, self.run_script("--uuid", provider, "--dry-run")[1])
        self.assertRegex(self.run_script("--uuid", provider, code=1)[1], f"409.*{lack}")
        self.assertEqual(500, self.inventory(provider)["total"])

    def test_a_dry_run(self):
        self.mount(500, 20)
        new = ("--name", NAME, "--create", "--aggregate-uuid", base.new_uuid(), "--dry-run")
        said, _ = self.run_script(*new)
        self.assertEqual((True, True, None, [None, 500]), (
            said["dry_run"], said["created"], said["uuid"], said["changes"]["total"]))
        self.assertEqual([], self.providers())
        provider = self.create(500, 20)
        self.mount(600, 20)
        said, _ = self.run_script(*new)
        self.assertEqual({"total": [500, 600]}, said["changes"])
        self.assertEqual(500, self.inventory(provider)["total"])


class MistakeTest(SharedStorageCase):

    def test_an_unmounted_share_is_not_measured(self):
        arguments = ("--name", NAME, "--create")
        self.assertIn("is not a mount point", self.run_script(*arguments, code=1)[1])
        self.share += "/nowhere"
        self.assertIn("No such file", self.run_script(*arguments, "--allow-any-path", code=1)[1])
        self.assertEqual([], self.providers())

    def test_a_share_of_nothing(self):
        self.mount(0.9, 0)
        self.assertIn("less than 1 GiB", self.run_script("--name", NAME, code=1)[1])

    def test_a_provider_that_is_not_there(self):
        provider = self.create(500, 20)
        for arguments, expected in (
                (["--name", "another"], "use --create"),
                (["--uuid", base.new_uuid()], "use --create"),
                (["--uuid", base.new_uuid(), "--name", NAME, "--create"], "409"),
                (["--uuid", provider, "--name", "another"], f"is called {NAME}")):
            self.assertIn(expected, self.run_script(*arguments, code=1)[1])

    def test_a_service_that_does_not_serve(self):
        self.mount(500, 20)
        for arguments, expected in (
                (["--os-token", "nobody"], "403"), (["--endpoint", self.url + "/no"], "404"),
                (["--os-token", "two\nlines"], "malformed"),
                (["--endpoint", "http://127.0.0.1:1"], "no answer from"),
                (["--endpoint", "http://127.0.0.1:port"], "malformed")):
            _, words = self.run_script("--name", NAME, "--create", *arguments, code=1)
            self.assertIn(expected, words)
            self.assertEqual(1, len(words.splitlines()), words)
            self.assertNotIn("lines", words)

    def test_a_service_that_is_overloaded(self):
        """It says when to come back, which the script does, for some time."""
        busy = self.script.Refused(503, "busy", 1)
        pause = self.useFixture(fixtures.MockPatch("time.sleep")).mock
        ask = self.useFixture(fixtures.MockPatchObject(self.script.Placement, "_ask")).mock
        ask.side_effect = [busy, busy, {"found": 1}]
        placement = self.script.Placement(self.url, "admin")
        self.assertEqual({"found": 1}, placement.read("/any"))
        self.assertEqual([mock.call(1)] * 2, pause.mock_calls)
        ask.side_effect = [busy] * self.script.ATTEMPTS
        self.assertRaises(self.script.Refused, placement.read, "/any")
        ask.side_effect = [self.script.Refused(503, "no reason")]
        self.assertRaises(self.script.Refused, placement.read, "/any")

    def test_wrong_arguments(self):
        for arguments in ([], ["--uuid", "pool"], ["--uuid", base.new_uuid(), "--create"],
                          ["--name", NAME, "--min-unit", "0"], ["--name", NAME, "--os-token", ""],
                          ["--name", NAME, "--endpoint", "placement:8778"],
                          ["--name", NAME, "--aggregate-uuid", "row 1"]):
            self.assertIn("usage: ", self.run_script(*arguments, code=2)[1])


class ProcessTest(SharedStorageCase):

    arguments = ("--name", NAME, "--create", "--allow-any-path")

    def assert_is_measured(self, inventory):
        size = os.statvfs(self.share)
        self.assertEqual(size.f_blocks * size.f_frsize // 2 ** 30, inventory["total"])
        taken = (size.f_blocks - size.f_bavail) * size.f_frsize / 2 ** 30
        # Others write to this disk at the same time.
        self.assertLess(abs(inventory["reserved"] - taken), 5)

    def test_a_real_file_system(self):
        done = self.run_process(*self.arguments)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        said = json.loads(done.stdout)
        self.assert_is_measured(said["inventory"])
        self.assert_is_measured(self.inventory(said["uuid"]))

    def test_one_line_for_a_terminal(self):
        terminal, its_end = pty.openpty()
        self.addCleanup(os.close, terminal)
        done = self.run_process(*self.arguments, stdout=its_end)
        os.close(its_end)
        said = os.read(terminal, 4096).decode()
        self.assertEqual((0, 1), (done.returncode, len(said.splitlines())), done.stderr)
        self.assertRegex(said, rf"{NAME} \(.*\): created, total \d+, reserved \d+")

    def test_several_machines_have_the_share(self):
        results = []
        machines = [threading.Thread(target=lambda: results.append(
            self.run_process(*self.arguments))) for _ in range(5)]
        for each in machines:
            each.start()
        for each in machines:
            each.join()
        self.assertEqual([(0, "")] * 5, [(each.returncode, each.stderr) for each in results])
        said = [json.loads(each.stdout) for each in results]
        self.assertEqual(1, sum(each["created"] for each in said))
        (provider,) = self.providers()
        self.assertEqual({provider["uuid"]}, {each["uuid"] for each in said})
        self.assert_is_measured(self.inventory(provider["uuid"]))
