# SPDX-License-Identifier: Apache-2.0
"""Casts: none is lost when a process or server fails before it is settled."""

import socket

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from placement_rpc.upgrade import gate
from tests import base, servers
from tests.integration import processes
from tests.integration.command_case import AWAY, CommandTest


class FailureTest(CommandTest):
    """Failures of servers while casts wait."""

    def make_broker(self):
        return self.useFixture(private.RabbitMQ())

    def test_the_broker_is_restarted(self):
        self.outcome(self.cast())
        requests = []
        for _ in range(2):
            self.broker.restart()
            requests.append(self.cast(timeout=40))
        for request_id in requests:
            self.outcome(request_id, 40)
        self.assertEqual(3, self.used())

    def test_the_broker_is_away(self):
        self.outcome(self.cast())
        self.broker.stop()
        error = self.assertRaises(exception.DeadlineExceeded, self.cast, timeout=3)
        self.assertEqual("placement.client.deadline_exceeded", error.code)
        self.broker.start()
        self.outcome(self.cast(timeout=40), 40)

    def test_casts_before_a_restart_of_the_broker_wait_for_the_first_conductor(self):
        self.running.conductor.stop()
        requests = [self.cast() for _ in range(5)]
        self.broker.restart()
        conductor = type(self.running.conductor)(
            self.running.conf, worker=5, topic=self.running.topic)
        self.addCleanup(conductor.stop)
        conductor.start()
        self.addCleanup(setattr, self.running.conductor, "stop", lambda: None)
        for request_id in requests:
            self.outcome(request_id, 40)
        self.assertEqual(5, self.used())

    def test_the_answer_of_the_store_is_lost_after_the_commit(self):
        """As if the process were killed between its commit and its acknowledgement."""
        failures = iter([True, True])

        def lose(settle, database, pending, method):
            answers = settle(database, pending, method)
            if next(failures, None):
                raise exception.StoreUnavailable(reason="the answer was lost")
            return answers

        self.replace_settle(lose)
        self.outcome(self.cast())
        self.outcome(self.cast())
        self.assertEqual(2, self.used())


class ClusterTest(base.TestCase):

    def test_a_node_that_hangs_is_passed_over(self):
        broker = servers.rabbitmq()
        with socket.create_server(("127.0.0.1", 0)) as hanging:
            address = hanging.getsockname()
            urls = broker.url.replace("rabbit://", f"rabbit://x:x@127.0.0.1:{address[1]},")
            reached = Broker.of(configuration.new_config(
                config_files=[], transport_url=urls)).connect()
            self.assertTrue(reached.connected)
            reached.close()

    def test_no_password_is_shown(self):
        self.assertNotIn("secret", repr(Broker.at("rabbit://user:secret@host/")))


class StoreAwayTest(base.TestCase):

    time_limit = 120

    def test_casts_wait_for_the_store_however_often_it_goes_away(self):
        server = self.useFixture(private.PostgreSQL(durable=True))
        running = self.useFixture(placement_fixtures.RunningService(
            transport_url=servers.rabbitmq().url, database_url=server.create_database(),
            queues__dead_letters=f"dead-{base.new_uuid()}", queues__commands_attempts=2))
        uuid = running.api.create_provider(None, "provider").uuid
        running.api.set_inventory(None, uuid, [base.inventory("VCPU", 100)])
        # Whether a claim may name a type depends on the services, which are then read each time.
        self.patch(gate.LiveReleases, "CHECKED_FOR", 0.0)
        requests = []
        for _ in range(4):
            server.stop()
            requests += [running.api.claim_allocations(
                None, base.claim({uuid: {"VCPU": 1}}, **named), cast=True)
                for named in ({"consumer_type": "INSTANCE"}, {}, {}, {}, {})]
            # Attempts beyond the limit, after which a command would be a dead letter.
            tried = self.log.output.count(AWAY)
            base.wait_until(
                lambda: self.log.output.count(AWAY) >= tried + 3)  # noqa: B023
            server.start()
        base.wait_until(lambda: running.api.get_usages(None, uuid).objects[0].used == 20)
        for request_id in requests:
            running.api.get_request_result(None, request_id).result()
        self.assertNotIn("dead letters", self.log.output)


class KilledTest(base.TestCase):

    time_limit = 120

    def test_conductors_are_killed_and_every_cast_is_settled_once(self):
        broker = self.useFixture(private.RabbitMQ())
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database("postgresql"), transport_url=broker.url))
        conductors = [self.useFixture(processes.Conductor({
            "DEFAULT": {"transport_url": broker.url},
            "database": {"connection": store.conf.database.connection},
            "conductor": {"host": f"host{number}", "workers": 1}})) for number in range(2)]
        client = placement_fixtures.api.PlacementAPI(conf=store.conf)
        self.addCleanup(client.close)
        client.ping(None, timeout=60)
        uuid = client.create_provider(None, "provider").uuid
        client.set_inventory(None, uuid, [base.inventory("VCPU", 100_000)])
        requests = []
        for round_ in range(4):
            for _ in range(200):
                requests.append(client.claim_allocations(
                    None, base.claim({uuid: {"VCPU": 1}}), cast=True))
            victim = conductors[round_ % 2]
            victim.kill()
            victim.start()
        base.wait_until(lambda: client.get_usages(
            None, uuid, timeout=30).objects[0].used == len(requests))
        generations = sorted(
            client.get_request_result(None, request_id).result().generations[uuid]
            for request_id in requests)
        self.assertEqual(list(range(2, len(requests) + 2)), generations)
