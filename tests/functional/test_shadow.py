# SPDX-License-Identifier: Apache-2.0
"""``placement shadow``: requests of a log asked of two services, which are scripted here.

``tests/conformance/test_shadow.py`` has real ones.
"""

import gzip
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import fixtures

from placement_rpc.cmd import manage, state_file
from tests import base, programs
from tests.scripted_service import ScriptedService

_ROOT = pathlib.Path(__file__).parents[2]
_UUIDS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(4)]


def _same(received):
    return 200, {"traits": [received.target, str(received.microversion)]}


def _candidates(*uuids, used=0):
    return {"allocation_requests": [
        {"allocations": {uuid: {"resources": {"VCPU": 1}}}, "mappings": {"": [uuid]}}
        for uuid in uuids],
        "provider_summaries": {uuid: {"resources": {"VCPU": {"capacity": 8, "used": used}}}
                               for uuid in uuids}}


class ShadowTest(base.TestCase):

    def setUp(self):
        super().setUp()
        for name in [name for name in os.environ if name.startswith("OS_")]:
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.useFixture(fixtures.EnvironmentVariable("OS_AUTH_TYPE", "none"))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        # Without clouds.yaml of the user who runs the tests.
        self.useFixture(fixtures.EnvironmentVariable("HOME", str(self.directory)))
        self.old, self.new = (self.useFixture(ScriptedService(_same)) for _ in range(2))

    def log_file(self, *lines, name="access.log"):
        path = self.directory / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    def arguments(self, *more, lines=("GET /traits",)):
        return ["placement", "shadow", "--url", self.old.url, "--against", self.new.url,
                "--requests", self.log_file(*lines), "--rate", "0", *more]

    def shadow(self, *more, lines=("GET /traits",)):
        """Run the program; return its exit code, what it found, and its error output."""
        done = programs.run(manage, *self.arguments(*more, lines=lines))
        return done.code, json.loads(done.stdout) if done.stdout.startswith("{") else (
            done.stdout), done.stderr

    def difference(self, *more, **values):
        """Run the program for one request whose answers differ; return the difference."""
        code, found, err = self.shadow(*more, **values)
        self.assertEqual(1, code, err)
        difference, = found["differences"]
        return difference

    def differing(self, old, new):
        """Let the services answer all requests with these statuses and bodies."""
        self.old.answer, self.new.answer = (
            lambda received, each=each: each for each in (old, new))


class RequestsTest(ShadowTest):
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
            received.target == "/cloud/7/") else _same(received._replace(
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
            check=False, capture_output=True, text=True, cwd=_ROOT,
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
            return _same(received)

        self.old.answer = together
        # The first request of the kind comes from each thread, and is sent twice.
        code, found, err = self.shadow("--concurrency", "4", lines=[
            f"GET /traits/CUSTOM_{number}" for number in range(8)])
        self.assertEqual((0, 8), (code, found["asked"]), err)

    def test_each_service_is_first_in_turn(self):
        order = []
        for service, name in ((self.old, "old"), (self.new, "new")):
            service.answer = lambda received, name=name: (order.append(name), _same(received))[1]
        self.shadow(lines=[f"GET /traits/CUSTOM_{number}" for number in range(4)])
        self.assertEqual(["old", "new", "new", "old"] * 2 + ["old", "new"], order)


class VerdictTest(ShadowTest):
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
        states = [{uuid: {} for uuid in _UUIDS} for _ in range(2)]

        def answer(number, uuids):
            def answer_of(received):
                if received.target.startswith("/allocation_candidates"):
                    return 200, _candidates(*uuids)
                uuid, _, part = received.target.removeprefix("/resource_providers/").partition("/")
                return 200, states[number][uuid].get(part, {})
            return answer_of

        self.old.answer, self.new.answer = answer(0, _UUIDS[:3]), answer(1, _UUIDS[:2])
        lines = ("GET /allocation_candidates?resources=VCPU:1",)
        found = self.difference(lines=lines)
        self.assertEqual(("different", None), (found["verdict"], found["cause"]))
        self.assertEqual("body.allocation_requests", found["where"])
        states[1][_UUIDS[2]]["inventories"] = {"inventories": {}}
        found = self.difference(lines=lines)
        self.assertEqual("data", found["verdict"])
        self.assertIn(f"/resource_providers/{_UUIDS[2]}/inventories: body.inventories is nothing "
                      "in the old store", found["cause"])

    def test_a_candidate_of_the_new_service_alone(self):
        """Of two choices, one candidate is none: the limit excuses it not."""
        def answer(mine, known):
            def answer_of(received):
                tree = received.target.rpartition("in_tree=")[2]
                if "in_tree=" in received.target:
                    return 200, _candidates(*(each for each in known if each == tree))
                return 200, _candidates(*mine) if "candidates" in received.target else {}
            return answer_of

        lines = ("GET /allocation_candidates?resources=VCPU:1&limit=2 1.36",)
        self.old.answer, self.new.answer = answer(_UUIDS[:2], _UUIDS), answer(_UUIDS[1:3], _UUIDS)
        code, found, _ = self.shadow(lines=lines)
        self.assertEqual((0, 1), (code, found["cut_by_limit"]))
        self.old.answer = answer(_UUIDS[:2], _UUIDS[:2])
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


class TroubleTest(ShadowTest):
    """Services that do not answer, refuse, or are something else."""

    def test_an_address_without_a_service(self):
        with ScriptedService(_same) as service:
            self.new.url = url = service.url
        code, found, err = self.shadow()
        self.assertEqual((2, ""), (code, found))
        self.assertIn(f"{url} does not answer: ConnectionError", err)
        self.assertEqual([], self.old.targets())

    def test_an_address_of_something_else(self):
        for body in (b"<html>", {"versions": {"values": []}}, [], {"versions": [{}]}):
            self.new.answer = lambda received, body=body: (200, body)
            done = programs.run(manage, *self.arguments()[:4], "--against",
                                f"{self.new.url}/identity", *self.arguments()[6:])
            self.assertEqual(2, done.code)
            self.assertIn("without the versions of a Placement service", done.stderr)

    def test_what_is_no_address(self):
        for url in ("ftp://host/", "host:8778", "http://", "u:s3cret@host:8778",
                    "http://u:s3cret@host:99999/", "http://u:s3cret@host:port/",
                    "http://u:s3cret@\u2100/"):
            for name in ("--url", "--against"):
                done = programs.run(manage, *self.arguments(), name, url)
                self.assertEqual(2, done.code)
                self.assertIn("is not the address of a service", done.stderr)
                self.assertNotIn("s3cret", done.stderr)

    def test_a_token_that_is_refused(self):
        self.new.answer = lambda received: (401, {"errors": []})
        code, _, err = self.shadow()
        self.assertEqual(2, code)
        self.assertIn(f"{self.new.url} refuses the credentials (401)", err)
        self.assertIn("stopped after 0 of 1 requests", err)

    def test_a_service_that_stops_answering(self):
        """What was found before is printed, and the service is not asked any more."""
        def answer(received):
            if len(self.new.received) > 10:
                # Neither status nor headers.
                raise ConnectionResetError
            return _same(received)

        self.new.answer = answer
        code, found, err = self.shadow(lines=[
            f"GET /traits/CUSTOM_{number}" for number in range(100)])
        self.assertEqual(2, code)
        self.assertIn("has not answered 10 requests in a row", err)
        self.assertLess(found["asked"], 30)
        self.assertGreater(found["verdicts"]["same"], 5)
        self.assertIn("no answer", found["differences"][0]["new"])

    def test_a_slow_service(self):
        gone = threading.Event()
        self.addCleanup(gone.set)
        self.new.answer = lambda received: (gone.wait(), _same(received))[1]
        code, found, err = self.shadow("--timeout", "0.2")
        self.assertEqual((2, 1), (code, found["verdicts"]["unanswered"]), err)
        self.assertIn("no answer: ReadTimeout", found["differences"][0]["new"])

    def test_a_service_that_is_not_ready_yet(self):
        """A service that still reads its store answers 503, which is no difference."""
        left = iter(range(3))
        self.new.answer = lambda received: (503, {}) if next(left, None) is not None else (
            _same(received))
        code, found, _ = self.shadow()
        self.assertEqual((0, 1), (code, found["verdicts"]["same"]))
        self.assertEqual(5, len(self.new.targets()))

    def test_services_whose_databases_are_away(self):
        """503 of one of them, or of both, says nothing about their answers."""
        def away(service, first=_same):
            """Answer the first request, which is asked twice, and none after it."""
            return lambda received: (
                first(received) if len(service.targets()) <= 2 else (503, {}))

        def compare():
            for service in (self.old, self.new):
                service.received.clear()
            code, found, _ = self.shadow(
                lines=("GET /traits/CUSTOM_A", "GET /traits/CUSTOM_B"))
            return code, found["verdicts"]["same"], found["verdicts"]["unanswered"]

        for services in ((self.new,), (self.old,), (self.old, self.new)):
            self.old.answer = self.new.answer = _same
            for service in services:
                service.answer = away(service)
            self.assertEqual((2, 1, 1), compare())

    def test_a_difference_is_one_whatever_else_was_not_compared(self):
        def answer(received):
            if "CUSTOM_A" in received.target:
                return 200, {"usages": {"VCPU": 1}}
            return (503, {}) if len(self.new.targets()) > 1 else _same(received)

        self.new.answer = answer
        code, found, err = self.shadow(lines=("GET /traits/CUSTOM_A", "GET /traits/CUSTOM_B"))
        self.assertEqual((1, 1, 1), (code, found["verdicts"]["data"],
                                     found["verdicts"]["unanswered"]), err)

    def test_a_token_that_is_refused_once(self):
        left = iter(range(1))
        self.new.answer = lambda received: (401, {}) if next(left, None) is not None else (
            _same(received))
        code, found, _ = self.shadow()
        self.assertEqual((0, 1), (code, found["verdicts"]["same"]))

    def test_a_redirection_is_not_followed(self):
        """It would lead the token to another host."""
        self.old.answer = lambda received: (302, b"", {"Location": f"{self.new.url}/elsewhere"})
        found = self.difference()
        self.assertEqual(("302", "200"), (found["old"], found["new"]))
        self.assertNotIn("/elsewhere", self.new.targets())

    def test_a_log_without_requests(self):
        code, _, err = self.shadow(lines=("nonsense", 'x "GET /v2.1/servers HTTP/1.1" 200 9'))
        self.assertEqual(2, code)
        self.assertIn("no read request", err)
        done = programs.run(manage, *self.arguments(), "--requests", "/no/such/file")
        self.assertEqual(2, done.code)
        self.assertIn("/no/such/file", done.stderr)
        for value in ("2.0", "1", "1.x"):
            self.assertRaises(SystemExit, programs.run, manage, *self.arguments(
                "--microversion", value))

    def test_an_interrupt_prints_what_there_is(self):
        reached = threading.Event()
        gone = threading.Event()
        self.addCleanup(gone.set)

        def answer(received):
            if len(self.old.received) > 6:
                reached.set()
                gone.wait()
            return _same(received)

        self.old.answer = answer
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", *self.arguments(
                lines=[f"GET /traits/CUSTOM_{number}" for number in range(50)])],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=_ROOT)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertTrue(reached.wait(60))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        found = json.loads(out)
        self.assertEqual((130, 50), (process.returncode, found["planned"]), err)
        self.assertGreater(found["asked"], 1)
        self.assertIn(f"stopped after {found['asked']} of 50 requests", err)
        self.assertNotIn("Traceback", err)


class CredentialsTest(ShadowTest):

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("OS_AUTH_TYPE"))

    def test_none(self):
        code, _, err = self.shadow()
        self.assertEqual((2, []), (code, self.old.received))
        self.assertIn("--os-cloud", err)

    def test_an_unknown_type_of_credentials(self):
        self.useFixture(fixtures.EnvironmentVariable("OS_AUTH_TYPE", "pony"))
        code, _, err = self.shadow()
        self.assertEqual((2, []), (code, self.old.received))
        self.assertIn("the credentials are not complete: The plugin pony", err)

    def test_a_token_of_the_environment(self):
        for name, value in (("AUTH_TYPE", "admin_token"), ("TOKEN", "gAAAA-secret"),
                            ("ENDPOINT", "http://elsewhere.example.org")):
            self.useFixture(fixtures.EnvironmentVariable(f"OS_{name}", value))
        self.new.answer = lambda received: (200, {})
        code, _, err = self.shadow("--format", "table")
        self.assertEqual(1, code, err)
        done = programs.run(manage, "--debug", *self.arguments())
        for service in (self.old, self.new):
            self.assertEqual({"gAAAA-secret"}, {each.headers["x-auth-token"]
                                                for each in service.received})
        self.assertNotIn("gAAAA-secret", done.stdout + done.stderr + self.log.output)

    def test_a_cloud_of_clouds_yaml_for_each(self):
        (self.directory / "clouds.yaml").write_text(json.dumps({"clouds": {
            name: {"auth_type": "admin_token", "auth": {
                "token": f"token of {name}", "endpoint": "http://elsewhere.example.org"}}
            for name in ("left", "right")}}))
        self.useFixture(fixtures.EnvironmentVariable(
            "OS_CLIENT_CONFIG_FILE", str(self.directory / "clouds.yaml")))
        code, _, err = self.shadow("--os-cloud", "left", "--against-os-cloud", "right")
        self.assertEqual(0, code, err)
        for service, name in ((self.old, "left"), (self.new, "right")):
            self.assertEqual({f"token of {name}"}, {each.headers["x-auth-token"]
                                                    for each in service.received})
        code, _, err = self.shadow("--os-cloud", "middle")
        self.assertEqual(2, code)
        self.assertIn("middle", err)

    def test_the_service_of_the_state_directory(self):
        self.useFixture(fixtures.EnvironmentVariable("OS_AUTH_TYPE", "none"))
        state_file.write(self.directory, transport_url="inprocess://", database="sqlite://",
                         http_url=self.new.url)
        arguments = self.arguments()
        del arguments[arguments.index("--against"):][:2]
        done = programs.run(manage, "--state-dir", str(self.directory), *arguments)
        self.assertEqual(0, done.code, done.stderr)
        self.assertIn("/traits", self.new.targets())
