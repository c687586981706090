# SPDX-License-Identifier: Apache-2.0
"""``placement shadow``: requests of a log asked of two services, which are scripted here.

``tests/conformance/test_shadow.py`` has real ones.
"""

import gzip
import json
import subprocess
import sys
import threading
import time

import fixtures

from placement_rpc.cmd import manage
from tests import programs
from tests.functional.shadow_case import ROOT, UUIDS, ShadowCase, candidates, same


class RequestsTest(ShadowCase):
    """What is sent."""

    def test_only_reads_are_sent_and_each_once(self):
        code, found, err = self.shadow(lines=(
            "GET /traits 1.6", "GET /traits 1.6", "GET /usages?project_id=p",
            'x "PUT /traits/CUSTOM_A HTTP/1.1" 201 0',
            'x "DELETE /traits/CUSTOM_A HTTP/1.1" 204 0',
            'x "GET /v2.1/servers HTTP/1.1" 200 9', "nonsense"))
        self.assertEqual(0, code, err)
        self.assertEqual((2, {"PUT": 1, "DELETE": 1}, 1, 1), (
            found["asked"], *(found["log"][name] for name in (
                "other_methods", "other_addresses", "without_request"))))
        for service in (self.old, self.new):
            self.assertEqual({"GET"}, {each.method for each in service.received})
            # The first request of each kind is sent once more, before it is measured.
            self.assertEqual(["/traits", "/traits", "/usages?project_id=p",
                              "/usages?project_id=p"], sorted(service.targets()))
            self.assertEqual({"/traits": "1.6", "/usages?project_id=p": "1.39", "/": None}, {
                each.target: each.microversion for each in service.received})
            self.assertEqual({"admin"}, {each.headers["x-auth-token"]
                                         for each in service.received})
        self.assertIn("3 read requests, 2 requests of other methods, which are not sent (DELETE, "
                      "PUT)", err)

    def test_several_microversions(self):
        self.shadow("--microversion", "1.6", "--microversion", "1.17", lines=(
            "GET /traits", "GET /resource_classes 1.2"))
        self.assertEqual({("/traits", "1.6"), ("/traits", "1.17"), ("/resource_classes", "1.2")},
                         {(each.target, each.microversion) for each in self.old.received
                          if each.target != "/"})

    def test_below_a_prefix_and_with_a_password(self):
        old = self.old.url.replace("http://", "http://ada:secret@") + "/cloud/7"
        # The scripted service answers the versions at its root alone.
        self.old.answer = lambda received: (200, {"versions": [{"max_version": "1.38"}]}) if (
            received.target == "/cloud/7/") else same(received._replace(
                target=received.target.removeprefix("/cloud/7")))
        done = programs.run(
            manage, "placement", "shadow", "--url", old, "--against", self.new.url + "/",
            "--requests", self.log_file("GET /cloud/7/traits"), "--format", "table")
        self.assertEqual(0, done.code, done)
        self.assertEqual({"/cloud/7/traits", "/cloud/7/"}, set(self.old.targets()))
        self.assertEqual({"/traits"}, set(self.new.targets()))
        # The newest that both have.
        self.assertEqual("1.38", self.new.received[-1].microversion)
        self.assertNotIn("secret", done.stdout + done.stderr)

    def test_a_dry_run_sends_nothing(self):
        code, found, _ = self.shadow("--dry-run", "--format", "table", lines=(
            "GET /traits", "GET /traits", "GET /traits?name=in:A", "GET /resource_classes"))
        self.assertEqual((0, [], []), (code, self.old.received, self.new.received))
        self.assertRegex(found, r"/traits +│ +2 +│ +3 ")
        done = programs.run(manage, *self.arguments("--dry-run"))
        self.assertEqual([{"target": "/traits", "microversion": None, "times": 1}],
                         json.loads(done.stdout))

    def test_logs_from_several_files_and_standard_input(self):
        packed = self.directory / "access.log.1.gz"
        packed.write_bytes(gzip.compress(b"GET /traits/CUSTOM_A\n"))
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", *self.arguments(
                "--requests", str(packed), "--requests", "-")],
            check=False, capture_output=True, text=True, cwd=ROOT,
            input='x "GET /traits/CUSTOM_B HTTP/1.1" 204 0\n')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertEqual({"/traits", "/traits/CUSTOM_A", "/traits/CUSTOM_B"},
                         set(self.old.targets()))

    def test_a_sample_of_each_kind(self):
        lines = [f"GET /traits/CUSTOM_{number}" for number in range(50)] + ["GET /usages"]
        code, found, _ = self.shadow("--sample", "3", lines=lines)
        self.assertEqual((0, 4), (code, found["planned"]))
        first = set(self.old.targets())
        self.old.received.clear()
        self.shadow("--sample", "3", lines=reversed(lines))
        self.assertEqual(first, set(self.old.targets()))

    def test_the_rate_is_limited(self):
        lines = [f"GET /traits/CUSTOM_{number}" for number in range(8)]
        arguments = self.arguments("--concurrency", "4", lines=lines)
        arguments[arguments.index("--rate") + 1] = "20"
        began = time.monotonic()
        self.assertEqual(0, programs.run(manage, *arguments).code)
        sent = len(self.old.received)
        self.assertGreaterEqual(sent, 10)
        self.assertGreaterEqual(time.monotonic() - began, (sent - 1) / 20)

    def test_several_at_a_time(self):
        """Requests wait for each other in the service, so four must be there at once."""
        barrier = threading.Barrier(4, timeout=30)

        def together(received):
            if received.target != "/traits":
                barrier.wait()
            return same(received)

        self.old.answer = together
        # The first request of the kind comes from each thread, and is sent twice.
        code, found, err = self.shadow("--concurrency", "4", lines=[
            f"GET /traits/CUSTOM_{number}" for number in range(8)])
        self.assertEqual((0, 8), (code, found["asked"]), err)

    def test_each_service_is_first_in_turn(self):
        order = []
        for service, name in ((self.old, "old"), (self.new, "new")):
            service.answer = lambda received, name=name: (order.append(name), same(received))[1]
        self.shadow(lines=[f"GET /traits/CUSTOM_{number}" for number in range(4)])
        self.assertEqual(["old", "new", "new", "old"] * 2 + ["old", "new"], order)


class VerdictTest(ShadowCase):
    """What is said of the answers."""

    def test_a_read_differs_as_the_stores_do(self):
        self.differing((200, {"usages": {"VCPU": 4}}), (200, {"usages": {"VCPU": 6}}))
        found = self.difference(lines=("GET /usages?project_id=p 1.9",))
        self.assertEqual({
            "verdict": "data", "target": "/usages?project_id=p", "microversion": "1.9",
            "times_in_log": 1, "where": "body.usages.VCPU", "old": "4", "new": "6",
            "cause": "the answer is what the stores hold"}, found)
        self.differing((204, b""), (404, {"errors": [{"status": 404}]}))
        found = self.difference(lines=("GET /traits/CUSTOM_A",))
        self.assertEqual(("data", "status", "204", "404"), tuple(
            found[name] for name in ("verdict", "where", "old", "new")))

    def test_a_server_error_is_no_matter_of_data(self):
        self.differing((200, {}), (500, b"<html>"))
        self.assertEqual("different", self.difference()["verdict"])
        self.differing((200, {}, {"OpenStack-API-Version": "placement 1.38"}), (200, {}))
        self.assertEqual(("different", "openstack-api-version"), tuple(
            self.difference()[name] for name in ("verdict", "where")))

    def test_the_cause_of_different_candidates(self):
        """A provider that differs in the stores, or none: then the services differ."""
        states = [{uuid: {} for uuid in UUIDS} for _ in range(2)]

        def answer(number, uuids):
            def answer_of(received):
                if received.target.startswith("/allocation_candidates"):
                    return 200, candidates(*uuids)
                uuid, _, part = received.target.removeprefix("/resource_providers/").partition("/")
                return 200, states[number][uuid].get(part, {})
            return answer_of

        self.old.answer, self.new.answer = answer(0, UUIDS[:3]), answer(1, UUIDS[:2])
        lines = ("GET /allocation_candidates?resources=VCPU:1",)
        found = self.difference(lines=lines)
        self.assertEqual(("different", None), (found["verdict"], found["cause"]))
        self.assertEqual("body.allocation_requests", found["where"])
        states[1][UUIDS[2]]["inventories"] = {"inventories": {}}
        found = self.difference(lines=lines)
        self.assertEqual("data", found["verdict"])
        self.assertIn(f"/resource_providers/{UUIDS[2]}/inventories: body.inventories is nothing "
                      "in the old store", found["cause"])

    def test_a_candidate_of_the_new_service_alone(self):
        """Of two choices, one candidate is none: the limit excuses it not."""
        def answer(mine, known):
            def answer_of(received):
                tree = received.target.rpartition("in_tree=")[2]
                if "in_tree=" in received.target:
                    return 200, candidates(*(each for each in known if each == tree))
                return 200, candidates(*mine) if "candidates" in received.target else {}
            return answer_of

        lines = ("GET /allocation_candidates?resources=VCPU:1&limit=2 1.36",)
        self.old.answer, self.new.answer = answer(UUIDS[:2], UUIDS), answer(UUIDS[1:3], UUIDS)
        code, found, _ = self.shadow(lines=lines)
        self.assertEqual((0, 1), (code, found["cut_by_limit"]))
        self.old.answer = answer(UUIDS[:2], UUIDS[:2])
        found = self.difference(lines=lines)
        self.assertEqual(("different", "it is not a candidate"), (found["verdict"], found["old"]))

    def test_a_cloud_in_motion(self):
        """An answer of the old service that changes is no difference; a settled one is none."""
        numbers = iter(range(1000))
        self.old.answer = lambda received: (200, {"usages": {"VCPU": next(numbers)}})
        self.new.answer = lambda received: (200, {"usages": {"VCPU": 1000}})
        code, found, _ = self.shadow()
        self.assertEqual((0, 1, 0), (code, found["verdicts"]["moving"],
                                     found["verdicts"]["same"]))
        self.assertEqual("moving", found["differences"][0]["verdict"])
        # The third answer, of the repeated request, is the same.
        numbers = iter((1, 2, 1000))
        code, found, _ = self.shadow()
        self.assertEqual((0, 1), (code, found["verdicts"]["same"]))
        self.assertEqual({"it was the same when asked again": 1}, found["notes"])

    def test_names_of_a_newer_release(self):
        self.differing((200, {"traits": ["HW_OLD", "CUSTOM_A"]}),
                       (200, {"traits": ["HW_OLD", "HW_NEW", "CUSTOM_A"]}))
        code, found, _ = self.shadow()
        self.assertEqual((0, {"1 standard names are known to one service only": 1}),
                         (code, found["notes"]))

    def test_forbidden_by_both(self):
        self.differing((403, {"errors": []}), (403, {"errors": []}))
        code, found, _ = self.shadow()
        self.assertEqual((1, 1), (code, found["verdicts"]["forbidden"]))
        _, text, _ = self.shadow("--format", "table")
        self.assertIn("role admin or service", text)

    def test_another_status_than_in_the_log(self):
        self.differing((404, {}), (404, {}))
        lines = ('x "GET /traits/CUSTOM_A HTTP/1.1" 204 0',
                 'x "GET /traits/CUSTOM_B HTTP/1.1" 404 0')
        code, found, _ = self.shadow(lines=lines)
        self.assertEqual((0, 1), (code, found["status_unlike_log"]))

    def test_tables(self):
        self.differing((200, {"usages": {"VCPU": 4}}), (200, {"usages": {"VCPU": 6}}))
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "200"))
        code, text, _ = self.shadow("--format", "table", "--show", "2", lines=[
            f"GET /usages?project_id={number}" for number in range(5)])
        self.assertEqual(1, code)
        for words in ("times faster", "old p50", "body.usages.VCPU", "3 more differ",
                      "'placement import' brings", "5 of 5 requests were compared"):
            self.assertIn(words, text)
        self.assertNotIn("forbidden", text)
