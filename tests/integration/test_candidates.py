# SPDX-License-Identifier: Apache-2.0
"""The candidate index on real databases: no commit of any process is missed."""

import contextlib
import random
import threading

import testscenarios

from placement_rpc import exception
from placement_rpc.accounting import batch
from placement_rpc.accounting.claims import ClaimChange
from placement_rpc.accounting.idempotency import Request
from placement_rpc.api import CandidateGroup, CandidatesRequest
from placement_rpc.candidates import structure
from placement_rpc.candidates.index import SHARES
from placement_rpc.candidates.live_index import LiveIndex
from placement_rpc.candidates.search import CandidateSearch
from placement_rpc.db import api as db
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, index_contents, servers
from tests.functional import candidate_fleet

_KINDS = [(kind, {"kind": kind}) for kind in servers.DATABASES]
_SERVERS = [each for each in _KINDS if each[0] != "sqlite"]
_WANTED = ResourceRequest(resources={"VCPU": 4})


class FleetTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = _SERVERS

    def test_index_and_model_agree_on_random_fleets(self):
        kind = self.kind

        class Fleet(candidate_fleet.Fleet):

            def new_database(self):
                return servers.new_database(kind)

        candidate_fleet.run(Fleet, 3)


class _Within:
    """A database whose writes are a part of a transaction that is not committed yet."""

    def __init__(self, tx):
        self._tx = tx

    def write(self, attempt, _what):
        return attempt(self._tx)


class LateCommitTest(testscenarios.WithScenarios, base.TestCase):
    """A transaction that took its ids first commits last."""

    scenarios = _SERVERS

    def test_it_is_not_missed(self):
        service = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=servers.new_database(self.kind)))
        uuids = []
        for name in ("late", "early"):
            uuids.append(service.api.create_provider(None, name).uuid)
            service.api.set_inventory(None, uuids[-1], [base.inventory("VCPU", 4)])
        search = CandidateSearch(service.database)
        search.index.wait_until_ready()
        late, early = uuids

        def found():
            return {each.uuid for each in search.find(_WANTED).candidates}

        claim = base.claim({late: {"VCPU": 1}})
        with service.database.writer() as tx:
            settled, = batch.settle(_Within(tx), [ClaimChange(
                Request.of("late", "claim_allocations", {"claim": claim}), claim)])
            self.assertIsNone(settled.error)
            service.api.claim_allocations(None, base.claim({early: {"VCPU": 1}}))
            self.assertEqual({late}, found())
            self.assertLess(0, candidate_fleet.assign_positions(service.database, 100))
            self.assertEqual({late}, found())
        self.assertEqual(set(), found())
        self.assertEqual({}, search.index.verify(0, 100)["differences"])
        # The index followed the feed; it was not built again.
        self.assertEqual(1, search.index.statistics()["made"])


class OwnWritesTest(testscenarios.WithScenarios, base.TestCase):
    """A search in any process finds what was committed before it."""

    time_limit = 180
    scenarios = _KINDS

    def test_each_answer_has_what_was_committed_before_it_was_asked_for(self):
        service = self.useFixture(placement_fixtures.RunningService(
            database_url=servers.new_database(self.kind)))
        other = db.Database(service.conf)
        self.addCleanup(other.close)
        search = CandidateSearch(other)
        search.index.wait_until_ready()
        wrong = []

        def live(uuid):
            for _ in range(12):
                consumer = base.new_uuid()
                for call, arguments, there in (
                        (service.api.claim_allocations,
                         (base.claim({uuid: {"VCPU": 1}}, consumer),), False),
                        (service.api.release_allocations, (consumer,), True)):
                    call(None, *arguments)
                    found = {each.uuid for each in search.find(_WANTED).candidates}
                    if (uuid in found) != there:
                        wrong.append((uuid, there))

        def live_on(uuid):
            try:
                live(uuid)
            except Exception as error:
                wrong.append((uuid, repr(error)))

        uuids = []
        for number in range(6):
            uuids.append(service.api.create_provider(None, f"provider {number}").uuid)
            service.api.set_inventory(None, uuids[-1], [base.inventory("VCPU", 4)])
        threads = [threading.Thread(target=live_on, args=(uuid,)) for uuid in uuids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        self.assertEqual({}, search.index.verify(0, 100)["differences"])
        statistics = search.index.statistics()
        self.assertEqual(1, statistics["made"])
        # Of claims that were settled together only one event says what was touched, and the others
        # are not read before they have positions: of 144 claims and releases, 24 at the least, and
        # two events of each provider.
        self.assertGreaterEqual(statistics["applied"], 36)


class ChangingTreesTest(testscenarios.WithScenarios, base.TestCase):
    """Indexes are built and followed while trees, traits, aggregates and allocations change."""

    time_limit = 240
    scenarios = _KINDS

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService(
            "local", database_url=servers.new_database(self.kind)))
        self.api = self.service.api
        self.roots = [self.api.create_provider(None, f"root {number}").uuid for number in range(3)]
        self.ended, self.failures = threading.Event(), []

    def test_every_read_is_consistent(self):
        followed = LiveIndex(self.service.database.reader)
        followed.wait_until_ready()
        changing = [threading.Thread(target=self.guarded, args=(self.change, number))
                    for number in range(4)]
        reading = [threading.Thread(target=self.guarded, args=(self.check, make)) for make in (
            lambda: followed, lambda: LiveIndex(self.service.database.reader))]
        for thread in changing + reading:
            thread.start()
        for thread in changing:
            thread.join()
        self.ended.set()
        for thread in reading:
            thread.join()
        self.assertEqual([], self.failures)
        self.assertEqual({}, followed.verify(0, 1000)["differences"])
        # It followed all changes, and was never built again.
        self.assertEqual(1, followed.statistics()["made"])
        self.assertGreater(followed.statistics()["applied"], 100)

    def guarded(self, call, *arguments):
        try:
            call(*arguments)
        except BaseException as error:
            self.failures.append(error)
            raise

    def change(self, number):
        """Grow a chain of providers, move parts of it between the roots, use it, and delete it."""
        chance = random.Random(number)
        for turn in range(4):
            chain = [self.roots[number % 3]]
            for level in range(4):
                chain.append(self.api.create_provider(
                    None, f"{number} {turn} {level}", parent_provider_uuid=chain[-1]).uuid)
                self.api.set_inventory(None, chain[-1], [base.inventory("VCPU", 8)])
            for level in (2, 3, 1, 2):
                self.move(chain[level], chance.choice(self.roots), f"{number} {turn} {level - 1}")
                self.api.set_provider_traits(None, chain[level], [SHARES])
                self.api.set_aggregates(None, chain[level], [base.new_uuid()])
                self.api.claim_allocations(None, base.claim({chain[4]: {"VCPU": 1}}))
            self.move(chain[1], None, f"{number} {turn} 0")
            for uuid in (chain[3], chain[2]):
                with contextlib.suppress(exception.Conflict):
                    self.api.delete_provider(None, uuid)

    def move(self, uuid, parent, name):
        with contextlib.suppress(exception.StoreBusy):
            self.api.update_provider(
                None, uuid, name, parent_provider_uuid=parent, may_move=True)

    def check(self, make):
        """Read an index until the changes end: one that follows, or a new one each time."""
        while not self.ended.is_set():
            with make().current() as index:
                faults = structure.faults(index, 0, 10 ** 6), structure.whole_faults(index)
                places = index_contents.of(index)
                parents = {uuid: place.parent for uuid, place in places.items()}
            self.assertEqual(({}, None), faults)
            for uuid, place in places.items():
                while parents[uuid] is not None:
                    uuid = parents[uuid]
                self.assertEqual(uuid, place.root)


class SnapshotTest(base.TestCase):
    """A transaction in which all statements see the same state."""

    def test_it_may_be_idle_and_the_next_one_may_not(self):
        # It holds no locks; the build of a large index works between its statements.
        store = self.useFixture(placement_fixtures.Store(servers.new_database("postgresql")))

        def values(snapshot):
            with store.database.reader(snapshot) as tx:
                return [tx.exec_driver_sql(f"SHOW {name}").scalar() for name in (
                    "transaction_isolation", "idle_in_transaction_session_timeout")]

        before = values(False)
        self.assertEqual(["repeatable read", "0"], values(True))
        self.assertEqual(before, values(False))
        self.assertEqual("read committed", before[0])
        self.assertNotEqual("0", before[1])


class NearlyFullTest(testscenarios.WithScenarios, base.TestCase):
    """Concurrent schedulers get all of the last free providers, without errors."""

    time_limit = 180
    scenarios = _KINDS

    def test_the_fleet_is_filled_to_the_last(self):
        service = self.useFixture(placement_fixtures.RunningService(
            database_url=servers.new_database(self.kind)))
        for number in range(40):
            uuid = service.api.create_provider(None, f"provider {number}").uuid
            service.api.set_inventory(None, uuid, [base.inventory("VCPU", 4)])
        done, refused = [], []

        def schedule():
            for _ in range(6):
                claim = base.claim(None)
                del claim.allocations
                try:
                    done.extend(service.api.claim_by_request(None, _WANTED, claim).generations)
                except exception.NoCandidates:
                    refused.append(claim)

        threads = [threading.Thread(target=schedule) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((40, 40, 8), (len(done), len(set(done)), len(refused)))


_SERVER = CandidatesRequest(groups=[
    CandidateGroup(resources={"VCPU": 2}),
    CandidateGroup(suffix="_A", resources={"VGPU": 1}),
    CandidateGroup(suffix="_B", resources={"VGPU": 1})], group_policy="isolate")


class NearlyFullTreesTest(testscenarios.WithScenarios, base.TestCase):
    """Concurrent schedulers fill trees, each of which has room for two servers."""

    time_limit = 300
    scenarios = testscenarios.multiply_scenarios(_KINDS, [("one conductor", {"conductors": 1})])
    scenarios += testscenarios.multiply_scenarios(
        _SERVERS, [("two conductors", {"conductors": 2})])
    trees, schedulers, each_asks = 24, 16, 4

    def make_fleet(self, api):
        """Create computes with two devices each; return the uuids of all providers."""
        uuids = []
        for number in range(self.trees):
            root = api.create_provider(None, f"compute {number}").uuid
            api.set_inventory(None, root, [base.inventory("VCPU", 4)])
            uuids.append(root)
            for device in range(2):
                uuids.append(api.create_provider(
                    None, f"device {number}.{device}", parent_provider_uuid=root).uuid)
                api.set_inventory(None, uuids[-1], [base.inventory("VGPU", 2)])
        return uuids

    def test_the_fleet_is_filled_to_the_last(self):
        url = servers.new_database(self.kind)
        services = [self.useFixture(placement_fixtures.RunningService(database_url=url))
                    for _ in range(self.conductors)]
        uuids = self.make_fleet(services[0].api)
        done, refused, wrong = [], [], []

        def schedule(api):
            for _ in range(self.each_asks):
                claim = base.claim(None)
                del claim.allocations
                try:
                    done.append(api.claim_by_request(None, _SERVER, claim))
                except exception.NoCandidates:
                    refused.append(claim)
                except Exception as error:
                    wrong.append(error)

        threads = [threading.Thread(target=schedule, args=(
            services[number % self.conductors].api,)) for number in range(self.schedulers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        self.assertEqual((2 * self.trees, self.schedulers * self.each_asks - 2 * self.trees),
                         (len(done), len(refused)))
        api = services[0].api
        self.assertEqual({2, 4}, {usage.used for uuid in uuids
                                  for usage in api.get_usages(None, uuid).objects})
        for each in done:
            self.assertEqual(each.allocations,
                             api.get_allocations(None, each.consumer_uuid).by_provider())
            self.assertEqual(3, len({uuid for uuids in each.mappings.values() for uuid in uuids}))
        tries = sum(map(self.tries, services))
        self.assertGreaterEqual(tries, len(done))
        # Conductors do not know the reservations of each other.
        self.assertLess(tries, len(done) * (1.5 if self.conductors == 1 else 4))
        for service in services:
            self.assertEqual({}, service.manager.candidates.reserved)

    def tries(self, service):
        """Return how many claims a service has tried."""
        name = b"placement_rpc_settled_together_sum "
        line, = (each for each in service.manager.metrics.show().splitlines()
                 if each.startswith(name))
        return float(line.removeprefix(name))
