# SPDX-License-Identifier: Apache-2.0
"""The server of a request queue on a connection that the test plays: no broker is needed."""

import collections
import contextlib
import itertools
import json
import threading
import time
import types
import unittest.mock

from placement_rpc import manager
from placement_rpc.amqp import frames
from placement_rpc.backoff import Backoff
from placement_rpc.rpc import batch_server, envelope, routing
from placement_rpc.service import attempts
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.versions import contract
from tests import base


class _Channel:
    """Records the answers, and what is acknowledged and requeued."""

    def __init__(self, connection):
        self.events = collections.defaultdict(set)
        self._connection = connection

    def __getattr__(self, _name):
        # Declarations, whose arguments are tested elsewhere.
        return unittest.mock.Mock()

    def basic_consume(self, queue, no_ack, arguments, callback):
        self._connection.take = callback
        return f"consumer of {queue}"

    def basic_cancel(self, _tag, nowait):
        self._connection.is_cancelled = True

    def basic_ack(self, tag, multiple=False):
        self._connection.acknowledged.append(tag)

    def basic_reject(self, tag, requeue):
        self._connection.requeued.append(tag)

    def publish(self, messages):
        for message in messages:
            self._connection.write(message.routing_key, message.body)


class _Connection:
    """A connection; the messages that were delivered on it are read one by one."""

    def __init__(self):
        self.delivered, self.take = collections.deque(), None
        self.acknowledged, self.requeued, self.answers = [], [], []
        self.tags, self._lock = itertools.count(1), threading.RLock()
        self.is_lost = self.is_cancelled = False

    def channel(self):
        return _Channel(self)

    def asking(self):
        return contextlib.nullcontext(self.channel())

    def writing(self, timeout=-1):
        return self._lock

    def write(self, queue, body):
        if self.is_lost:
            raise ConnectionResetError(104, "reset")
        self.answers.append((queue, json.loads(json.loads(body)["oslo.message"])))

    def read(self, seconds, enough=lambda: False, waker=None):
        if self.is_lost:
            raise ConnectionResetError(104, "reset")
        if not self.delivered:
            time.sleep(min(seconds, 0.01))
        while self.delivered and not enough():
            self.take(self.delivered.popleft())

    def shut(self):
        self.is_lost = True

    drop = close = shut


class CallServerTest(base.TestCase):

    queue, threads = None, 4

    def setUp(self):
        super().setUp()
        self.patch(frames, "publish", _Channel.publish)
        store = self.useFixture(placement_fixtures.Store(conductor__drain_timeout=20))
        self.manager = manager.Manager(store.conf, store.database)
        self.connections = []
        self.server = batch_server.BatchServer(
            store.conf, types.SimpleNamespace(
                options=store.conf.oslo_messaging_rabbit, backoff=Backoff, connect=self.connect),
            self.manager, [routing.name(routing.TOPIC, self.queue)], self.threads,
            attempts.Attempts(store.database), self.queue)
        self.server.begin()
        self.addCleanup(self.end)

    def connect(self, **_options):
        self.connections.append(_Connection())
        return self.connections[-1]

    def end(self):
        self.server.stop()
        self.server.wait()

    @property
    def answers(self):
        return [answer for each in self.connections for answer in each.answers]

    def call(self, client, method="ping", monitored=False, redelivered=False, context=None,
             **args):
        """Deliver a call."""
        made = envelope.Call(
            method, contract.RPC_VERSION, args, context or {}, base.new_uuid(), client)
        body = json.loads(envelope.seal_call(made))
        if monitored:
            body["oslo.message"] = json.dumps(
                {**json.loads(body["oslo.message"]), "_timeout": 10})
        body = json.dumps(body).encode()
        connection = self.connections[-1]
        connection.delivered.append(types.SimpleNamespace(
            delivery_tag=next(connection.tags), body=body, body_size=len(body), headers={},
            unreadable=None, properties={}, delivery_info={"redelivered": redelivered}))

    def hold(self):
        """Have calls not be answered until an event is set."""
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        answer = batch_server.Calls.answer

        def wait(calls, call):
            go_on.wait(20)
            return answer(calls, call)

        self.patch(batch_server.Calls, "answer", wait)
        return go_on
