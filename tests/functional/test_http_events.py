# SPDX-License-Identifier: Apache-2.0
"""Events over HTTP: pages, long polls, server-sent events, and lists that can be followed."""

import contextlib
import datetime
import json
import resource
import socket
import threading
import time
import unittest.mock

import requests

from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.db.queries import bulk, events
from placement_rpc.http import follower, streams
from placement_rpc.testing.facade import Facade
from tests import base


class EventsTest(base.TestCase):
    """On a facade with a relay, over a socket."""

    time_limit = 120

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(Facade(
            api__max_waiting=3, api__max_followers=3, api__user_share=100))
        self.api, self.url = self.service.api, self.service.url
        self.session = requests.Session()
        self.addCleanup(self.session.close)
        self.session.headers.update({"x-auth-token": "admin"})

    def get(self, path="/events", **how):
        how.setdefault("timeout", 30)
        return self.session.get(self.url + path, **how)

    def make(self, *names):
        """Providers, and wait until their events have positions; returns the last one."""
        for name in names:
            self.api.create_provider(None, name)
        base.wait_until(lambda: not self.status()["unpositioned"])
        return self.status()["last_position"]

    def status(self):
        """Return the state of the outbox."""
        with self.service.database.reader() as tx:
            return events.status(tx)

    def lines(self, answer):
        self.assertEqual((200, "application/x-ndjson"), (
            answer.status_code, answer.headers["content-type"]), answer.text)
        return [json.loads(line) for line in answer.text.splitlines()]

    def test_pages(self):
        self.assertEqual(3, self.make("a", "b", "c"))
        found = self.lines(self.get())
        self.assertEqual([(1, "a"), (2, "b"), (3, "c")], [
            (each["position"], each["payload"]["name"]) for each in found])
        self.assertEqual({"position", "event_type", "event_id", "occurred_at", "payload"},
                         set(found[0]))
        answer = self.get("/events?after=1&limit=1")
        self.assertEqual([found[1]], self.lines(answer))
        self.assertEqual("2", answer.headers["placement-position"])
        answer = self.get("/events?after=3")
        self.assertEqual(([], "3"), (self.lines(answer), answer.headers["placement-position"]))
        self.assertEqual("3", self.get("/events?after=now").headers["placement-position"])

    def test_a_poll_waits_for_the_next(self):
        self.make("a")
        began = time.monotonic()
        self.assertEqual([], self.lines(self.get("/events?after=1&wait=1")))
        self.assertGreaterEqual(time.monotonic() - began, 0.9)
        timer = threading.Timer(0.5, self.api.create_provider, (None, "b"))
        timer.start()
        self.addCleanup(timer.join)
        event, = self.lines(self.get("/events?after=1&wait=30"))
        self.assertEqual("b", event["payload"]["name"])
        self.assertLess(time.monotonic() - began, 20)

    def test_what_is_refused(self):
        self.make("a")
        for query in ("after=2", "after=-1", "after=x", "limit=0", "wait=61", "wait=x", "from=1",
                      "after=99999999999999999999"):
            self.assertEqual(400, self.get(f"/events?{query}").status_code, query)
        self.assertEqual(400, self.get(headers={
            "Last-Event-ID": "x", "Accept": "text/event-stream"}).status_code)
        self.assertEqual(406, self.get(headers={"Accept": "text/plain"}).status_code)
        for query in ("limit=1", "wait=1"):
            self.assertEqual(400, self.get(f"/events?{query}", headers={
                "Accept": "text/event-stream"}).status_code)

    def test_an_event_names_the_request(self):
        answers = [self.session.post(f"{self.url}/resource_providers", json={"name": name},
                                     headers=headers, timeout=30)
                   for name, headers in (("a", {}), ("b", {"Idempotency-Key": "mine"}))]
        self.make()
        self.assertEqual([answers[0].headers["x-openstack-request-id"], "mine"], [
            each["payload"]["request_id"] for each in self.lines(self.get())])

    def test_what_was_pruned_is_gone(self):
        self.make("a", "b", "c")
        base.wait_until(lambda: self.status()["published_position"] == 3)
        later = bulk.now() + datetime.timedelta(days=1)
        self.service.database.write(lambda tx: events.prune(tx, later, limit=2))
        for headers in ({}, {"Accept": "text/event-stream"},
                        {"Accept": "text/event-stream", "Last-Event-ID": "1"}):
            after = "" if "Last-Event-ID" in headers else "?after=1"
            answer = self.get(f"/events{after}", headers=headers)
            self.assertEqual(410, answer.status_code)
            error, = answer.json()["errors"]
            self.assertEqual(("placement.events.pruned", 3), (
                error["code"], error["oldest_position"]))
        self.assertEqual([3], [each["position"] for each in self.lines(self.get())])
        self.assertEqual([3], [
            each["position"] for each in self.lines(self.get("/events?after=2"))])
        self.service.database.write(lambda tx: events.prune(tx, later))
        self.assertEqual(410, self.get("/events?after=2").status_code)
        self.assertEqual([], self.lines(self.get("/events?after=3")))
        self.assertEqual([], self.lines(self.get()))

    def stream(self, **headers):
        """An open stream of server-sent events; returns an iterator of dicts."""
        answer = self.get("/events", stream=True, headers={
            "Accept": "text/event-stream", **headers})
        self.addCleanup(answer.close)
        self.assertEqual((200, "text/event-stream"), (
            answer.status_code, answer.headers["content-type"]))
        return self.sent(answer)

    @staticmethod
    def sent(answer):
        event = {}
        for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
            name, _, value = line.partition(": ")
            if not line and event:
                yield event
                event = {}
            elif name:
                event[name] = value

    def test_server_sent_events(self):
        self.make("a", "b")
        stream = self.stream(**{"Last-Event-ID": "1"})
        self.assertEqual({"id": "1"}, next(stream))
        event = next(stream)
        self.assertEqual(("2", "resource_provider.create"), (event["id"], event["event"]))
        self.assertEqual("b", json.loads(event["data"])["payload"]["name"])
        self.api.create_provider(None, "c")
        self.assertEqual("3", next(stream)["id"])
        # A client that reconnects gives its last position, at the address that it began with.
        for path in ("/events?after=1", "/events?after=now"):
            again = self.sent(self.get(path, stream=True, headers={
                "Accept": "text/event-stream", "Last-Event-ID": "2"}))
            self.assertEqual(["2", "3"], [next(again)["id"] for _ in range(2)])

    def test_not_too_many_may_wait(self):
        self.make("a")
        streams = [self.stream(**{"Last-Event-ID": "0"}) for _ in range(3)]
        for each in streams:
            next(each)
        answer = self.get("/events?after=1", headers={"Accept": "text/event-stream"})
        self.assertEqual((503, "placement.events.too_many_waiting"), (
            answer.status_code, answer.json()["errors"][0]["code"]))
        self.assertIn(answer.headers["retry-after"], map(str, range(5, 21)))
        self.assertEqual(200, self.get("/events").status_code)
        self.assertEqual(200, self.get("/resource_providers").status_code)

    def test_they_have_positions_while_the_broker_is_away(self):
        publisher = self.service.running.conductor.publisher

        def unconfirmed(*_arguments):
            raise Unconfirmed("away")

        self.make("a")
        with unittest.mock.patch.object(publisher, "publish", unconfirmed):
            for name in ("b", "c", "d"):
                self.assertEqual(name, self.wait_for(name)["payload"]["name"])
        self.assertEqual(4, self.make())

    def wait_for(self, name):
        """Make a provider, and wait for its event."""
        after = self.get("/events?after=now").headers["placement-position"]
        self.api.create_provider(None, name)
        event, = self.lines(self.get(f"/events?after={after}&wait=30"))
        return event

    def test_lists_can_be_followed_without_a_gap(self):
        """A client that lists, and follows from the list's position, sees every provider."""
        ended = threading.Event()

        def create():
            number = 0
            while not ended.is_set():
                number += 1
                self.api.create_provider(None, f"provider {number}")

        thread = threading.Thread(target=create)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(ended.set)
        lists = []
        for _ in range(10):
            answer = self.get("/resource_providers")
            lists.append((int(answer.headers["placement-position"]), {
                each["uuid"] for each in answer.json()["resource_providers"]}))
        ended.set()
        thread.join()
        last = self.make()
        everyone = {each.uuid for each in self.api.list_providers(None).objects}
        for position, known in lists:
            after, known = position, set(known)
            while after < last:
                answer = self.get(f"/events?after={after}")
                known |= {each["payload"]["provider_uuid"] for each in self.lines(answer)}
                after = int(answer.headers["placement-position"])
            self.assertEqual(everyone, known)

    def test_allocations_carry_their_position(self):
        self.make("a")
        uuid = self.api.list_providers(None).objects[0].uuid
        for path in (f"/allocations/{uuid}", f"/resource_providers/{uuid}/allocations"):
            self.assertEqual("1", self.get(path).headers["placement-position"])


class ManyFollowersTest(base.TestCase):
    """Streams of the embedded server, which has no thread for each."""

    time_limit = 180
    followers = 1000

    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.service = self.useFixture(Facade(api__max_followers=self.followers + 2))
        self.port = int(self.service.url.rpartition(":")[2])

    def follow(self, user="admin", buffer=None):
        connection = socket.socket()
        self.addCleanup(connection.close)
        if buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.settimeout(60)
        connection.connect(("127.0.0.1", self.port))
        connection.sendall(
            b"GET /events HTTP/1.1\r\nhost: x\r\nx-auth-token: %b\r\nx-roles: admin\r\n"
            b"accept: text/event-stream\r\nlast-event-id: 0\r\n\r\n" % user.encode())
        return connection

    def until(self, connection, text):
        """Read until a text comes; returns everything that came."""
        found = b""
        while text not in found:
            part = connection.recv(65536)
            self.assertTrue(part, found[-500:])
            found += part
        return found

    def test_each_gets_every_event_without_a_thread(self):
        self.service.api.create_provider(None, "first")
        before = threading.active_count()
        streams = [self.follow(f"user-{number % 10}") for number in range(self.followers)]
        reads, list_events = [], self.service.api.list_events
        for each in streams:
            self.assertIn(b"200 OK", self.until(each, b"id: 1\nevent: resource_provider.create"))
        self.service.api.list_events = lambda *how, **kw: reads.append(how) or list_events(
            *how, **kw)
        self.service.api.create_provider(None, "second")
        for each in streams:
            self.until(each, b"id: 2\nevent: resource_provider.create")
        # One read for all, and no more threads than these of the streams and of the poll.
        self.assertLess(len(reads), 20)
        self.assertLessEqual(threading.active_count(), before + 3)
        self.assertEqual(200, requests.get(
            f"{self.service.url}/resource_providers", headers={"x-auth-token": "admin"},
            timeout=30).status_code)
        for each in streams:
            each.close()
        base.wait_until(lambda: not self.service.facade.streams.clients)

    def test_streams_go_on_once_there_is_room_for_their_threads(self):
        start, has_room = threading.Thread.start, []

        def start_some(thread):
            if thread.name == "event streams" and not has_room.pop(0):
                raise RuntimeError("can't start new thread")
            start(thread)

        self.service.api.create_provider(None, "first")
        with unittest.mock.patch.object(threading.Thread, "start", start_some):
            for room in ([False], [True, False]):
                has_room[:] = room
                refused = self.follow()
                self.until(refused, b"events follow")
                with contextlib.suppress(ConnectionError):
                    while refused.recv(65536):
                        pass
                self.assertEqual(0, self.service.facade.streams.clients)
            has_room[:] = [True]
            self.until(self.follow(), b"id: 1\nevent: resource_provider.create")

    def test_one_user_does_not_take_all_places(self):
        self.service.facade.streams = streams.EventStreams(
            self.service.api, self.service.facade.follower, follower.Places(4, 50))
        self.addCleanup(self.service.facade.streams.close)
        for _ in range(2):
            self.until(self.follow("red"), b"events follow")
        refused = self.until(self.follow("red"), b"}]}")
        self.assertIn(b"503 ", refused)
        self.assertIn(b"too_many_waiting", refused)
        self.assertIn(b"retry-after: ", refused.lower())
        for _ in range(2):
            self.until(self.follow("blue"), b"events follow")
        self.assertIn(b"in one process", self.until(self.follow("green"), b"}]}"))

    def test_a_slow_client_is_dropped_and_holds_up_nobody(self):
        self.service.facade.streams = slow = streams.EventStreams(
            self.service.api, self.service.facade.follower, follower.Places(4, 100),
            patience=2)
        self.addCleanup(slow.close)
        list_events = self.service.api.list_events
        large = "x" * 50_000

        def padded(*how, **kw):
            found = list_events(*how, **kw)
            found.events = [{**each, "payload": large} for each in found.events]
            return found

        self.service.api.list_events = padded
        lazy, eager = self.follow("lazy", buffer=4096), self.follow("eager")
        base.wait_until(lambda: slow.clients == 2)
        for number in range(200):
            self.service.api.create_provider(None, f"provider {number}")
        self.until(eager, b"id: 200\n")
        base.wait_until(lambda: slow.clients == 1)
        self.service.api.create_provider(None, "last")
        self.until(eager, b"id: 201\n")
        with contextlib.suppress(ConnectionError):
            while lazy.recv(65536):
                pass

    def test_an_unexpected_error_ends_the_streams_that_met_it_only(self):
        first, list_events, calls = self.follow(), self.service.api.list_events, []
        self.until(first, b"events follow")

        def fail_once(*how, **kw):
            calls.append(how)
            if len(calls) == 1:
                raise RuntimeError("unexpected")
            return list_events(*how, **kw)

        self.service.api.list_events = fail_once
        self.service.api.create_provider(None, "provider")
        self.assertIn(b"event: error", self.until(first, b"cannot be read"))
        self.until(self.follow(), b"id: 1\nevent: resource_provider.create")
        self.service.api.create_provider(None, "second")
        self.until(self.follow(), b"id: 2\nevent: resource_provider.create")

    def test_a_stopped_server_ends_the_streams(self):
        stream = self.follow()
        self.until(stream, b"events follow")
        self.service.facade.close()
        found = b""
        while part := stream.recv(65536):
            found += part
        self.assertTrue(found.endswith(b"0\r\n\r\n"), found)
