# SPDX-License-Identifier: Apache-2.0
"""Heartbeats do not wait for a connection that something else uses."""

import contextlib

import sqlalchemy as sa
import testscenarios

from placement_rpc import manager
from placement_rpc.db import models
from placement_rpc.service.heartbeat import Heartbeat
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers


class HeartbeatTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(kind, {"kind": kind}) for kind in servers.DATABASES if kind != "sqlite"]

    def test_all_connections_are_in_use(self):
        store = self.useFixture(placement_fixtures.Store(
            servers.new_database(self.kind), conductor__report_interval=1,
            database__max_pool_size=2, transactions__idle_timeout=600))
        heartbeat = Heartbeat(store.conf, manager.Manager(store.conf, store.database),
                              "conductor", "host", 0)
        heartbeat.start()
        with contextlib.ExitStack() as all_of_them:
            tx, _ = (all_of_them.enter_context(store.database.reader()) for _ in range(2))

            def seen():
                return tx.execute(sa.select(models.services.c.last_seen_at)).scalar()

            for _ in range(2):
                before = seen()
                base.wait_until(lambda before=before: seen() != before)
        heartbeat.stop()
        with store.database.reader() as tx:
            self.assertIsNone(tx.execute(sa.select(models.services.c.id)).scalar())
