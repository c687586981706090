# SPDX-License-Identifier: Apache-2.0
"""``placement shadow`` with services, logs and passwords that are not as they should be."""

import json
import signal
import subprocess
import sys
import threading

import fixtures

from placement_rpc.cmd import manage, state_file
from tests import programs
from tests.functional.shadow_case import ROOT, ShadowCase, same
from tests.scripted_service import ScriptedService


class TroubleTest(ShadowCase):
    """Services that do not answer, refuse, or are something else."""

    def test_an_address_without_a_service(self):
        with ScriptedService(same) as service:
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
            return same(received)

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
        self.new.answer = lambda received: (gone.wait(), same(received))[1]
        code, found, err = self.shadow("--timeout", "0.2")
        self.assertEqual((2, 1), (code, found["verdicts"]["unanswered"]), err)
        self.assertIn("no answer: ReadTimeout", found["differences"][0]["new"])

    def test_a_service_that_is_not_ready_yet(self):
        """A service that still reads its store answers 503, which is no difference."""
        left = iter(range(3))
        self.new.answer = lambda received: (503, {}) if next(left, None) is not None else (
            same(received))
        code, found, _ = self.shadow()
        self.assertEqual((0, 1), (code, found["verdicts"]["same"]))
        self.assertEqual(5, len(self.new.targets()))

    def test_services_whose_databases_are_away(self):
        """503 of one of them, or of both, says nothing about their answers."""
        def away(service, first=same):
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
            self.old.answer = self.new.answer = same
            for service in services:
                service.answer = away(service)
            self.assertEqual((2, 1, 1), compare())

    def test_failures_of_both_are_no_answers(self):
        for status in 429, 500, 502, 504:
            self.old.answer = self.new.answer = lambda received, status=status: (status, {})
            code, found, _ = self.shadow()
            self.assertEqual((2, 0, 1), (
                code, found["verdicts"]["same"], found["verdicts"]["unanswered"]), status)
        self.old.answer = same
        self.new.answer = lambda received: (500, {})
        code, found, _ = self.shadow()
        self.assertEqual((1, 1), (code, found["verdicts"]["different"]))

    def test_a_difference_is_one_whatever_else_was_not_compared(self):
        def answer(received):
            if "CUSTOM_A" in received.target:
                return 200, {"usages": {"VCPU": 1}}
            return (503, {}) if len(self.new.targets()) > 1 else same(received)

        self.new.answer = answer
        code, found, err = self.shadow(lines=("GET /traits/CUSTOM_A", "GET /traits/CUSTOM_B"))
        self.assertEqual((1, 1, 1), (code, found["verdicts"]["data"],
                                     found["verdicts"]["unanswered"]), err)

    def test_a_token_that_is_refused_once(self):
        left = iter(range(1))
        self.new.answer = lambda received: (401, {}) if next(left, None) is not None else (
            same(received))
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
            return same(received)

        self.old.answer = answer
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.manage", *self.arguments(
                lines=[f"GET /traits/CUSTOM_{number}" for number in range(50)])],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
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


class CredentialsTest(ShadowCase):

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
