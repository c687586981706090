# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc top`` beside a running service."""

import argparse
import contextlib
import fcntl
import io
import json
import os
import pathlib
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import urllib.request

import fixtures

from placement_rpc import exception
from placement_rpc.cmd import calls, client_parser, scrape, state_file, top
from tests import base

_ROOT = pathlib.Path(__file__).parents[2]
_PROGRAM = (sys.executable, "-W", "ignore", "-m", "placement_rpc.cmd.main")
_UUID = "c0ffee00-0000-4000-8000-000000000001"


class InterruptionTest(base.TestCase):

    def test_an_interruption_that_a_destructor_drops(self):
        class Client:
            """A service that is gone, and ends an object at that moment."""

            def get_versions(self, _context, timeout):
                Ended()
                raise exception.ServiceUnavailable(reason="gone")

        class Ended:
            def __del__(self):
                os.kill(os.getpid(), signal.SIGINT)

        before = signal.getsignal(signal.SIGINT)
        options = argparse.Namespace(
            once=False, format="json", interval=0.01, timeout=1, metrics=[])
        # Otherwise Python writes that it ignores the exception.
        self.useFixture(fixtures.MonkeyPatch("sys.unraisablehook", lambda _: None))
        top.run(Client(), options)
        self.assertIs(before, signal.getsignal(signal.SIGINT))


class FullestTest(base.ContractTest):
    time_limit = 60

    def screen(self, command):
        """Run a command's function on the service; return what it printed."""
        options = client_parser.parser().parse_args(command)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            calls.call(self.api, options)
        return shown.getvalue()

    def test_what_is_used_of_no_capacity_comes_first(self):
        full, half = self.provider("full", VCPU=8), self.provider("half", VCPU=8)
        self.provider("empty", VCPU=8)
        for uuid in (half, full):
            self.claim({uuid: {"VCPU": 4}})
        self.api.set_inventory(None, full, [base.inventory("VCPU", {"total": 8, "reserved": 8})])
        found = json.loads(self.screen(["top", "--once", "--interval", "0.01"]))
        self.assertEqual([("full", 0, None), ("half", 8, 50.0), ("empty", 8, 0.0)], [
            (row["provider"], row["capacity"], row["percent"]) for row in found["fullest"]])
        self.assertEqual({"full": None, "half": 50.0, "empty": 0.0}, {
            row["provider"]: row["percent"] for row in json.loads(self.screen(["usages"]))})
        self.assertRaises(exception.InvalidInput, self.screen, ["usages", "--limit", "1", full])

    def test_numbers_are_whole_on_a_narrow_terminal(self):
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "60"))
        self.api.resource_class_create(None, "CUSTOM_A_CLASS_OF_A_LONG_NAME")
        self.claim({self.provider("n" * 90, CUSTOM_A_CLASS_OF_A_LONG_NAME=1234567890):
                    {"CUSTOM_A_CLASS_OF_A_LONG_NAME": 987654321}})
        shown = self.screen(["top", "--once", "--interval", "0.01", "--format", "table"])
        for number in ("987654321", "1234567890", "80.0"):
            self.assertIn(number, shown)


class AnswersTest(base.TestCase):
    """Servers that answer with no metrics."""

    def answer(self, data):
        """Return the address of a server that sends these bytes to one client."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)

        def serve():
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        return f"http://127.0.0.1:{listening.getsockname()[1]}/metrics"

    def test_what_is_no_metrics_is_an_error_that_names_the_address(self):
        for data in (b"HTTP/1.1 200 OK\r\n\r\n<html>502</html>\n", b"garbage\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\ncut",
                     b"HTTP/1.1 200 OK\r\n\r\n\xff\n"):
            url = self.answer(data)
            self.assertIn(url, str(self.assertRaises(OSError, scrape.Reading.of, [url])))
        for url in ("http://\xe9 x/", "http://localhost:abc/metrics", "ftp://localhost/"):
            self.assertIn(repr(url), str(
                self.assertRaises(ValueError, scrape.Reading.of, [url])))


class TopTest(base.TestCase):
    # Programs that take their time to start on a busy machine.
    time_limit = 240

    def setUp(self):
        super().setUp()
        self.state_dir = self.useFixture(fixtures.TempDir()).join("state")
        service = subprocess.Popen(
            [*_PROGRAM, "--state-dir", self.state_dir, "standalone", "--http-port", "0"],
            stdout=subprocess.PIPE, text=True, cwd=_ROOT)
        self.addCleanup(service.communicate)
        self.addCleanup(service.kill)
        while "Try next" not in (line := service.stdout.readline()):
            self.assertTrue(line)
        self.url = state_file.read(self.state_dir)["http_url"]
        self.request("POST", "/resource_providers", {"name": "node-1", "uuid": _UUID})
        self.request("PUT", f"/resource_providers/{_UUID}/inventories", {
            "resource_provider_generation": 0, "inventories": {"VCPU": {"total": 48}}})
        # Rates need requests, which go on until the end of the test.
        ended = threading.Event()
        asking = threading.Thread(target=lambda: [
            self.request("GET", "/resource_providers") for _ in iter(
                lambda: ended.wait(0.05), True)])
        asking.start()
        self.addCleanup(asking.join)
        self.addCleanup(ended.set)

    def request(self, method, path, body=None):
        request = urllib.request.Request(
            self.url + path, method=method, data=json.dumps(body).encode() if body else None,
            headers={"x-auth-token": "admin", "content-type": "application/json",
                     "openstack-api-version": "placement 1.20"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    def command(self, *arguments):
        return [*_PROGRAM, "--state-dir", self.state_dir, "--local", "top", "--interval", "0.5",
                *arguments]

    def test_once_in_a_pipe(self):
        done = subprocess.run(self.command("--once"), check=False, capture_output=True, text=True,
                              cwd=_ROOT)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        state = json.loads(done.stdout)
        self.assertIn("list_providers", [row["method"] for row in state["calls"]])
        self.assertGreater(state["http_per_second"], 0)
        self.assertEqual([{"provider": "node-1", "resource_class": "VCPU", "used": 0,
                           "capacity": 48, "percent": 0.0}], state["fullest"])
        self.assertEqual(["placement-rpc-standalone"],
                         [each["binary"] for each in state["services"]])
        self.assertEqual([], state["problems"])

    def test_once_as_a_table(self):
        done = subprocess.run(self.command("--once", "--format", "table"), check=False,
                              capture_output=True, text=True, cwd=_ROOT)
        self.assertEqual((0, ""), (done.returncode, done.stderr))
        self.assertIn("placement-rpc top", done.stdout)
        self.assertIn("node-1", done.stdout)
        self.assertNotIn("Ctrl-C", done.stdout)

    def test_metrics_that_do_not_answer(self):
        done = subprocess.run(
            self.command("--once", "--metrics", "http://127.0.0.1:1/metrics"), check=False,
            capture_output=True, text=True, cwd=_ROOT)
        self.assertEqual((1, ""), (done.returncode, done.stdout))
        self.assertIn("http://127.0.0.1:1/metrics", done.stderr)
        self.assertEqual(1, done.stderr.count("\n"))

    def test_a_live_screen(self):
        self.check_live_screen(signal.SIGINT, 0)

    def test_a_live_screen_that_is_terminated(self):
        self.check_live_screen(signal.SIGTERM, -signal.SIGTERM)

    def check_live_screen(self, number, code):
        """Start a live screen, end it with a signal, and see the terminal as it was before."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        process = subprocess.Popen(
            self.command(), stdin=theirs, stdout=theirs, stderr=theirs, cwd=_ROOT,
            env={**os.environ, "TERM": "xterm-256color"})
        os.close(theirs)
        self.addCleanup(os.close, ours)
        self.addCleanup(process.kill)
        shown, words = "", {"\x1b[?1049h", "services: 1 up", "outbox: 0 unsent",
                            "index: 1 providers", "p99 ms", "list_providers", "node-1", "VCPU"}
        # Drawn at least twice: the first screen may be of before the relay and the index.
        while shown.count("Ctrl-C ends it") < 2 or any(each not in shown for each in words):
            shown += os.read(ours, 4096).decode(errors="replace")
        process.send_signal(number)
        rest = ""
        while "\x1b[?1049l" not in rest:
            rest += os.read(ours, 4096).decode(errors="replace")
        self.assertEqual(code, process.wait())
        self.assertNotIn("Traceback", rest)
