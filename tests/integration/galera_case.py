# SPDX-License-Identifier: Apache-2.0
"""A Galera cluster that the tests of a class share, with a service on each of its nodes."""

import contextlib

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import leases, relaying
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.galera import GaleraCluster
from tests import base

# Rows without a key, changed from the last to the first: a node that applies the change reads half
# of the table for each of them.
_BALLAST = 5000
_LEASE = "relay"


class GaleraCase(base.TestCase):
    """``services`` are of a database that all tests of the class share, one on each node."""

    options = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = GaleraCluster()
        cls.addClassCleanup(cls.cluster.cleanUp)
        cls.cluster.setUp()
        cls.database = cls.cluster.create_database()
        cls.cluster.nodes[0].execute(
            f"USE {cls.database}; CREATE TABLE ballast (n INT); "
            f"INSERT INTO ballast SELECT seq FROM seq_1_to_{_BALLAST};"
            "CREATE TABLE marker (n INT PRIMARY KEY)")

    def service(self, number, **options):
        """Start a service without a bus on a node; return the fixture."""
        return self.useFixture(placement_fixtures.RunningService(
            "local", database_url=self.cluster.nodes[number].url_of(self.database),
            **{**self.options, **options}))

    @contextlib.contextmanager
    def busy(self, number):
        """Keep a node from applying what the first one commits within the block.

        The block has to end while the node is busy still.
        """
        first, node = (sa.create_engine(
            self.cluster.nodes[each].url_of(self.database), poolclass=sa.NullPool)
            for each in (0, number))
        with first.begin() as tx:
            tx.exec_driver_sql("DELETE FROM marker")
        with node.connect() as tx:
            tx.exec_driver_sql("SET SESSION wsrep_sync_wait = 1")
            tx.exec_driver_sql("SELECT n FROM marker")
        for statement in ("UPDATE ballast SET n = n + 1 ORDER BY n DESC",
                          "INSERT INTO marker VALUES (1)"):
            with first.begin() as tx:
                tx.exec_driver_sql(statement)

        def check():
            with node.connect() as tx:
                self.assertEqual([], tx.exec_driver_sql("SELECT n FROM marker").all(),
                                 "the node was not busy for long enough")

        yield check

    def positioned(self, service):
        """Give all events positions, as a relay does; return their rows in this order."""
        holder = base.new_uuid()
        base.wait_until(lambda: service.database.write(
            lambda tx: leases.acquire(tx, _LEASE, holder, 60)))
        service.database.write(lambda tx: relaying.next_batch(tx, _LEASE, holder, None, 500))
        while service.database.write(
                lambda tx: relaying.give_waiting_positions(tx, _LEASE, holder, 500)):
            pass
        service.database.write(lambda tx: leases.release(tx, _LEASE, holder))
        with service.database.reader() as tx:
            return tx.execute(sa.select(models.events).order_by(models.events.c.position)).all()
