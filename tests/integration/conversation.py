# SPDX-License-Identifier: Apache-2.0
"""A client and a server that talk over RabbitMQ, for tests of the connection between them."""

import threading
import time

from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.conf import service as configuration
from placement_rpc.context import RequestContext
from placement_rpc.db import api as db
from placement_rpc.manager import Manager
from placement_rpc.rpc import senders
from placement_rpc.rpc.batch_server import BatchServer
from placement_rpc.rpc.endpoint import exposed
from placement_rpc.versions import contract
from tests import base, servers
from tests.counted_attempts import CountedHere

_TOPIC = "conversation"


class Speaker(Manager):
    """A manager that returns a given text, after a given time or once ``go_on`` is set."""

    calls = {**contract.CALLS, "say": contract.Call(), "tell_all": contract.Call(large=True)}
    tellers = 0
    may_end = threading.Event()

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.go_on = threading.Event()

    @exposed
    def say(self, context, text, after=0):
        self.go_on.wait(after)
        if text == "no":
            raise exception.NameInUse(name="no")
        return text


    @exposed
    def tell_all(self, context):
        type(self).tellers += 1
        self.may_end.wait(60)
        return [None] * 1000


class ConversationTest(base.TestCase):
    """A client and a server, on the broker of all tests."""

    time_limit = 120

    def setUp(self):
        super().setUp()
        self.broker = self.make_broker()
        self.topic = f"{_TOPIC}-{base.new_uuid()}"
        self.conf = self.configured()
        self.speaker = Speaker(self.conf, db.Database(self.conf))
        self.server = BatchServer(
            self.conf, Broker.of(self.conf), self.speaker, [self.topic], 8, CountedHere())
        self.server.begin()
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.stop)
        self.addCleanup(self.speaker.go_on.set)
        self.caller = self.make_caller()

    def make_broker(self):
        return servers.rabbitmq()

    def configured(self, **options):
        return configuration.new_config(
            config_files=[], transport_url=self.broker.url, database__connection="sqlite://",
            **options)

    def make_caller(self, **options):
        conf = self.configured(**options)
        caller = senders.RabbitSender(conf, Broker.of(conf), self.topic)
        self.addCleanup(caller.close)
        return caller

    def say(self, text, timeout=30, caller=None, **arguments):
        return (caller or self.caller).call(
            RequestContext(), "say", {"text": text, **arguments}, timeout)

    def until_answered(self, text):
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.say(text, timeout=3)
            except exception.ServiceUnavailable:
                self.assertLess(time.monotonic(), deadline)

    def in_threads(self, call, *arguments):
        """Return the results or errors of the calls, in the order of the arguments."""
        answers = [None] * len(arguments)

        def run(number, argument):
            try:
                answers[number] = call(argument)
            except exception.PlacementException as error:
                answers[number] = error

        threads = [threading.Thread(target=run, args=each) for each in enumerate(arguments)]
        for thread in threads:
            thread.start()
        return threads, answers
