# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL servers whose primary Patroni chooses, as operators run them."""

import subprocess
import sys

import fixtures

from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.patroni import PatroniCluster
from tests import base, environments
from tests.integration import ledger
from tests.integration.load import Load

# Seconds within which Patroni has chosen another primary, on a busy machine.
_CHOSEN = 120


class PatroniTest(base.TestCase):
    """Patroni chooses another primary, and no change that was answered is lost."""

    time_limit = 400

    def setUp(self):
        super().setUp()
        self.cluster = self.useFixture(PatroniCluster(self.patroni()))
        self.service = self.useFixture(placement_fixtures.RunningService(
            database_url=self.cluster.create_database(),
            placement_client__deadline=_CHOSEN + 30.0))
        self.load = Load(self.service.api)
        self.addCleanup(self.load.end)

    def patroni(self):
        """Return Patroni's command line, for the servers' user, who may not read this tree.

        Nor the interpreter of the tests: ``env`` takes the first one that the user may run.
        """
        copy = self.useFixture(fixtures.TempDir()).path
        library, = environments.program("patroni").directory.glob("lib/python*/site-packages")
        subprocess.run(["cp", "-r", f"{library}/.", copy], check=True)
        subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
        return ("env", f"PYTHONPATH={copy}", library.parent.name, "-W", "ignore", "-m", "patroni")

    def fail_over(self, name, fault):
        """Let something happen to the primary, and wait for another one; return the former."""
        before = self.cluster.wait_for_standby()

        def act():
            fault(before)
            base.wait_until(lambda: self.cluster.primary not in (None, before), _CHOSEN)

        _, gap = self.load.survive(act)
        print(f"\n{self.id()}: {name}: {gap:.1f} s without an answer", file=sys.stderr)
        return before

    def test_the_primary_is_killed_then_replaced_then_frozen(self):
        killed = self.fail_over("killed", lambda primary: primary.kill())
        killed.start()
        self.fail_over("switched over", lambda primary: self.cluster.switch_over())
        self.cluster.settle()
        frozen = self.fail_over("frozen", lambda primary: primary.freeze())
        # Clients that have noticed do not return to it.
        self.load.survive(frozen.thaw)
        self.load.end()
        # Until Patroni has demoted it, a new connection, such as that of the check below, may read
        # what it had when it was frozen.
        base.wait_until(frozen.is_standby, _CHOSEN)
        ledger.check(self, self.service.database, self.load.reports)
