# SPDX-License-Identifier: Apache-2.0
"""The last release and this tree on one store and one broker.

The release is its wheel, installed in an environment of its own; see
:mod:`tests.upgrade.release_environment`. "Old" is that release and "new" this tree.
"""

import pathlib
import signal
from typing import NamedTuple

import fixtures
import sqlalchemy as sa
import testscenarios

from placement_rpc.db import models
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing import servers as private
from tests import base, compute_nodes, servers
from tests.integration import ledger, processes
from tests.upgrade import release_environment, side_by_side
from tests.upgrade.release_environment import THIS_TREE
from tests.upgrade.side_by_side import wait_until

_VERSION = "0.2.0"

# Each direction once, and with it each database once.
_DIRECTIONS = [
    ("old to new on postgresql", {"kind": "postgresql", "is_forward": True}),
    ("new to old on mariadb", {"kind": "mariadb", "is_forward": False}),
]


def claim(allocations, consumer, **values):
    """Return a Claim as :mod:`tests.upgrade.release_client` takes it."""
    return {"!Claim": {"consumer_uuid": consumer, "allocations": allocations,
                       "project_id": "project", "user_id": "user", **values}}


def inventory(resource_class, total, **values):
    return {"!Inventory": {"resource_class": resource_class, "total": total, **values}}


def request(resources, **values):
    return {"!ResourceRequest": {"resources": resources, **values}}


def compute_node():
    """Return a ComputeNode, one of those that nova's own code serialised."""
    node = next(each for each in compute_nodes.nodes() if each["nova_object.version"] == "1.16"
                and each["nova_object.data"]["pci_device_pools"]["nova_object.data"]["objects"])
    node["nova_object.data"].pop("id", None)
    node["nova_object.changes"] = [
        name for name in node.get("nova_object.changes", []) if name != "id"]
    return {"!ComputeNode": node}


class Relayed(NamedTuple):
    """The position that was given last, the one published last, and events without a position."""

    last: int
    published: int
    waiting: int


class ReleasesTest(testscenarios.WithScenarios, base.TestCase):
    """A store whose schema the old release made, and the new one expanded."""

    time_limit = 180
    kind = "postgresql"

    def setUp(self):
        # Before the time limit begins, in case it is missing.
        self.old = release_environment.release(_VERSION)
        self.new = THIS_TREE
        super().setUp()
        self.broker = self.make_broker()
        self.url = self.broker.url
        self.store = self.make_store()

    def make_broker(self):
        return self.useFixture(servers.VirtualHost())

    def make_store(self):
        database = servers.new_empty_database(self.kind)
        side_by_side.manage(
            self.old, self.useFixture(fixtures.TempDir()).path, database, "db", "sync")
        # Expands the schema.
        return self.useFixture(placement_fixtures.Store(database))

    def conductor(self, installation, url=None, **groups):
        """Start a conductor and wait until it serves."""
        conductor = self.begin(installation, url or self.url, self.store, **groups)
        self.wait_for(conductor, self.store)
        return conductor

    def begin(self, installation, url, store, **groups):
        """Start a conductor."""
        return self.useFixture(side_by_side.Conductor(installation, {
            "DEFAULT": {"transport_url": url},
            "database": {"connection": store.conf.database.connection},
            "notifications": {"lease": 2}, **groups}))

    def start(self, conductor, installation):
        """Start a conductor again, as a release, and wait until it serves."""
        conductor.installation = installation
        conductor.start()
        self.wait_for(conductor, self.store)

    def end(self, conductor):
        """Let a conductor drain and end."""
        conductor.signal(signal.SIGTERM)
        conductor.process.wait(60)

    def wait_for(self, conductor, store):
        def serves():
            if conductor.process.poll() is not None:
                raise RuntimeError(conductor.said())
            with store.database.reader() as tx:
                return tx.execute(sa.select(models.services.c.host).where(
                    models.services.c.host == conductor.host)).first()

        wait_until(serves, message=conductor.said)

    def client(self, installation, url=None):
        return self.useFixture(side_by_side.Client(installation, url or self.url))

    def provider(self, client, total=10):
        """Create a provider with VCPU and MEMORY_MB; returns its uuid."""
        uuid = base.new_uuid()
        client.call("create_provider", name=f"provider {uuid}", provider_uuid=uuid)
        client.call("set_inventory", provider_uuid=uuid, inventories=[
            inventory("VCPU", total), inventory("MEMORY_MB", 1024 * total)])
        return uuid

    def count(self, table, *conditions, store=None):
        with (store or self.store).database.reader() as tx:
            return tx.execute(
                sa.select(sa.func.count()).select_from(table).where(*conditions)).scalar()

    def relayed(self):
        """Return the progress of the relay, a :class:`Relayed`."""
        with self.store.database.reader() as tx:
            state = tx.execute(sa.select(models.relay_state)).one_or_none()
        waiting = self.count(models.events, models.events.c.position.is_(None))
        return Relayed(state.last_position, state.published_position, waiting) if state else (
            Relayed(0, 0, waiting))

    def all_published(self):
        """Return whether every event of the store is published."""
        found = self.relayed()
        return found.last and found.last == found.published and not found.waiting

    def events(self):
        """Wait until all is published; returns the events of the stream, from the first on."""
        wait_until(self.all_published, message=lambda: str(self.relayed()))
        last = self.relayed().last
        found = []
        for event in listener.StreamReader(self.url, "placement_events", 1).events(60):
            found.append(event)
            if event.position == last:
                break
        return found


class EnvironmentTest(base.TestCase):

    def test_each_runs_its_own_packages(self):
        """The old release does not find this tree, even where the environment names it."""
        root = pathlib.Path(__file__).parents[2]
        old = release_environment.release(_VERSION)
        self.useFixture(fixtures.EnvironmentVariable("PYTHONPATH", str(root)))
        for installation, directory in ((old, old.directory), (THIS_TREE, root)):
            # It makes no call.
            client = self.useFixture(side_by_side.Client(installation, "rabbit://unused.invalid/"))
            package = pathlib.Path(client.package)
            self.assertTrue(package.is_relative_to(directory), package)
            if installation is old:
                self.assertEqual(_VERSION, client.version)


class CastsInFlightTest(ReleasesTest):

    scenarios = _DIRECTIONS

    def setUp(self):
        super().setUp()
        # Casts of "first" are settled by "second".
        self.first, self.second = (
            (self.old, self.new) if self.is_forward else (self.new, self.old))
        self.running = self.conductor(self.first, queues={"commands_batch": 1})
        self.api = self.client(self.first)
        self.uuid = self.provider(self.api, 1000)
        self.end(self.running)

    def cast(self, client, consumer=None, amount=1, **named):
        return client.call("claim_allocations", cast=True, claim=claim(
            {self.uuid: {"VCPU": amount}}, consumer or base.new_uuid()), **named)

    def outcome(self, client, request_id):
        """Wait until a request is settled; returns a dict of ``accepted`` or ``refused``."""
        def settled():
            answer = client.ask("get_request_result", request_id=request_id)
            if "error" in answer and answer["error"]["code"] == "placement.request.not_found":
                return None
            return answer["result"]

        return wait_until(settled)

    def test_what_waits_is_settled_by_the_other_release(self):
        """In the order in which it was sent."""
        consumer = base.new_uuid()
        sent = [self.cast(self.api, consumer), self.cast(self.api, consumer, 3),
                self.cast(self.api, amount=5000),
                self.cast(self.api, request_id="twice"), self.cast(self.api, request_id="last")]
        sent.append(self.api.call("release_allocations", consumer_uuid=consumer, cast=True))
        self.start(self.running, self.second)
        for client in (self.api, self.client(self.second)):
            found = [self.outcome(client, request_id) for request_id in sent]
            self.assertEqual("placement.claim.capacity_exceeded", found.pop(2)["refused"]["code"])
            # Generation 1 is that of the inventories.
            self.assertEqual([{self.uuid: number} for number in range(2, 7)],
                             [each["accepted"]["generations"] for each in found])
            self.assertEqual([1, 2, 1, 1, 0],
                             [each["accepted"]["consumer_generation"] for each in found])
            self.assertEqual({"VCPU": 2, "MEMORY_MB": 0}, {
                each["resource_class"]: each["used"] for each in client.call(
                    "get_usages", provider_uuid=self.uuid)["objects"]})

    def test_what_a_killed_conductor_had_begun_the_other_release_completes(self):
        other = self.client(self.second)
        sent = [self.cast(client) for _ in range(100) for client in (self.api, other)]
        before = self.count(models.requests)
        # It settles them one by one.
        self.running.installation = self.first
        self.running.start()
        wait_until(lambda: self.count(models.requests) > before + 5)
        self.running.kill()
        self.assertLess(self.count(models.requests), before + len(sent))
        self.start(self.running, self.second)
        self.assertEqual(
            [{self.uuid: number} for number in range(2, len(sent) + 2)],
            [self.outcome(self.api, request_id)["accepted"]["generations"]
             for request_id in sent])
        self.assertEqual(before + len(sent), self.count(models.requests))
        ledger.check_events(self, self.store.database, self.events())


class OutboxTest(ReleasesTest):
    """What one release committed and could not publish is published by the other."""

    scenarios = _DIRECTIONS

    def make_broker(self):
        # It is stopped.
        return self.useFixture(private.RabbitMQ())

    def claim(self, facade, uuid):
        """Claim through a facade, which needs no broker."""
        answer = facade.send("PUT", f"/allocations/{base.new_uuid()}", json={"allocations": [
            {"resource_provider": {"uuid": uuid}, "resources": {"VCPU": 1}}]})
        self.assertEqual(204, answer.status_code, answer.text)

    def test_events_are_published_without_a_gap(self):
        first, second = (self.old, self.new) if self.is_forward else (self.new, self.old)
        conductor = self.conductor(first)
        facade = self.useFixture(side_by_side.Facade(first, {
            "api": {"transport": "local"},
            "database": {"connection": self.store.conf.database.connection}}))
        uuid = self.provider(self.client(first), 100)
        self.claim(facade, uuid)
        wait_until(self.all_published, message=conductor.said)
        self.broker.stop()
        for _ in range(5):
            self.claim(facade, uuid)
        # The relay cannot publish them, and gives them positions.
        wait_until(lambda: not self.relayed().waiting, message=conductor.said)
        conductor.kill()
        for _ in range(5):
            self.claim(facade, uuid)
        found = self.relayed()
        self.assertEqual((5, 5), (found.last - found.published, found.waiting))
        # As if the broker had confirmed one event more than the store has recorded.
        with self.store.database.writer() as tx:
            tx.execute(sa.update(models.relay_state).values(
                published_position=found.published - 1))
        self.broker.start()
        self.start(conductor, second)
        events = self.events()
        self.assertEqual(found.last + 5, len(events))
        ledger.check_events(self, self.store.database, events)
        self.assertEqual(11, sum(event.event_type == "allocation.create" for event in events))


class StoredOutcomesTest(ReleasesTest):
    """A request that one release settled is answered by the other, and not settled again."""

    scenarios = [(kind, {"kind": kind}) for kind in ("postgresql", "mariadb")]

    def setUp(self):
        super().setUp()
        # A virtual host for each conductor, so that a client chooses the one that answers.
        other = self.useFixture(servers.VirtualHost()).url
        self.conductor(self.old)
        self.conductor(self.new, other)
        self.clients = {(client, server): self.client(
            getattr(self, client), self.url if server == "old" else other)
            for client in ("old", "new") for server in ("old", "new")}

    def test_a_request_that_is_sent_again(self):
        for first, second in (("old", "new"), ("new", "old")):
            asking = self.clients[first, first]
            self.check_refusals_and_batches(asking, second)
            methods = ["claim_batch"]
            for method, arguments, others in self.changes(asking):
                methods.append(method)
                request_id = f"{method[:40]}-{base.new_uuid()[:13]}"
                expected = asking.call(method, **arguments, request_id=request_id)
                for client in ("old", "new"):
                    again = self.clients[client, second]
                    self.assertEqual(
                        _as_replayed(expected), _as_replayed(again.call(
                            method, **arguments, request_id=request_id)),
                        f"{method} from {first} to {second}")
                    self.assertEqual(
                        "placement.request.id_reused",
                        again.ask(method, **{**arguments, **others}, request_id=request_id)
                        .get("error", {}).get("code"), f"{method} from {first} to {second}")
            # This is a query about a request, not a change.
            self.assertEqual(
                set(self.clients["old", "old"].changes) - {"get_request_result"}, set(methods))

    def changes(self, client):
        """Yield every kind of change: method, arguments, and arguments of another request."""
        uuid, consumer, target = (base.new_uuid() for _ in range(3))
        name = f"CUSTOM_{base.new_uuid()[:8].upper()}"
        yield "create_provider", {"name": uuid, "provider_uuid": uuid}, {"name": f"other {uuid}"}
        yield ("update_provider", {"provider_uuid": uuid, "name": f"new {uuid}"},
               {"name": f"other {uuid}"})
        yield ("set_inventory", {"provider_uuid": uuid, "inventories": [inventory("VCPU", 8)]},
               {"inventories": [inventory("VCPU", 9)]})
        yield ("add_inventory", {"provider_uuid": uuid, "inventory": inventory("DISK_GB", 8)},
               {"inventory": inventory("DISK_GB", 9)})
        yield ("update_inventory", {"provider_uuid": uuid, "inventory": inventory("DISK_GB", 9)},
               {"inventory": inventory("DISK_GB", 10)})
        yield ("delete_inventory", {"provider_uuid": uuid, "resource_class": "DISK_GB"},
               {"resource_class": "VCPU"})
        yield ("set_aggregates", {"provider_uuid": uuid, "aggregates": [uuid]},
               {"aggregates": [target]})
        # With preconditions, which hold no more when the request is sent again.
        yield ("claim_allocations", {
            "claim": claim({uuid: {"VCPU": 1}}, consumer, consumer_generation=0)}, {
            "claim": claim({uuid: {"VCPU": 2}}, consumer, consumer_generation=0)})
        yield ("move_allocations", {
            "source_uuid": consumer, "target_uuid": target, "consumer_generation": 1}, {
            "target_uuid": base.new_uuid()})
        yield ("release_allocations", {"consumer_uuid": target, "consumer_generation": 1},
               {"consumer_uuid": consumer})
        yield ("claim_by_request", {
            "wanted": request({"VCPU": 1}, member_of=[[uuid]]), "claim": claim(None, consumer)}, {
            "wanted": request({"VCPU": 2}, member_of=[[uuid]])})
        yield "resource_class_create", {"name": name}, {"name": f"{name}_OTHER"}
        yield ("resource_class_rename", {"name": name, "new_name": f"{name}_NEW"},
               {"new_name": f"{name}_OTHER"})
        yield ("resource_class_delete", {"name": f"{name}_NEW"}, {"name": name})
        node = compute_node()
        _name(node, base.new_uuid())
        yield ("sync_compute_node", {"node": node, "allocations": {}, "snapshot_at": 1.0e9},
               {"snapshot_at": 1.1e9})
        created, not_created = (compute_node() for _ in range(2))
        for each in (created, not_created):
            _name(each, base.new_uuid())
        yield ("object_action", {"objinst": created, "objmethod": "create", "args": [],
                                 "kwargs": {}}, {"objinst": not_created})
        empty = base.new_uuid()
        client.call("create_provider", name=empty, provider_uuid=empty)
        yield "delete_provider", {"provider_uuid": empty}, {"provider_uuid": uuid}

    def check_refusals_and_batches(self, asking, second):
        uuid, consumer, other = self.provider(asking), base.new_uuid(), base.new_uuid()
        batch = [claim({uuid: {"VCPU": 1}}, consumer), claim({uuid: {"VCPU": 99}}, other)]
        batch_id, refused_id = (f"req-{base.new_uuid()}" for _ in range(2))
        refused = {"claim": batch[1], "request_id": refused_id}
        expected = asking.call("claim_batch", claims=batch, request_id=batch_id)
        self.assertEqual("placement.claim.capacity_exceeded", expected[1]["code"])
        error = asking.ask("claim_allocations", **refused)
        self.assertEqual("placement.claim.capacity_exceeded", error["error"]["code"])
        for client in ("old", "new"):
            again = self.clients[client, second]
            self.assertEqual(_as_replayed(expected), _as_replayed(
                again.call("claim_batch", claims=batch, request_id=batch_id)))
            self.assertEqual(error, again.ask("claim_allocations", **refused))
            self.assertEqual(expected[0]["generations"], again.call(
                "get_request_result", request_id=batch_id)["accepted"]["generations"])
            self.assertEqual(expected[1], again.call(
                "get_request_result", request_id=f"{batch_id}#1")["refused"])
            self.assertEqual({"placement.request.id_reused"}, {each["code"] for each in (
                again.call("claim_batch", request_id=batch_id, claims=[
                    claim({uuid: {"VCPU": 3}}, each) for each in (consumer, other)]))})
        self.assertEqual(2, self.generation(asking, uuid))

    def generation(self, client, uuid):
        return client.call("get_provider", provider_uuid=uuid)["generation"]


def _name(node, uuid):
    """Give a ComputeNode a uuid, and names that no other has."""
    node["!ComputeNode"]["nova_object.data"].update(
        uuid=uuid, host=f"host-{uuid}", hypervisor_hostname=f"node-{uuid}")


def _as_replayed(answer):
    """Return an answer as that to a request that is sent again."""
    if isinstance(answer, list):
        return [_as_replayed(each) for each in answer]
    if isinstance(answer, dict) and "replayed" in answer:
        return {**answer, "replayed": True}
    return answer


class CallsTest(ReleasesTest):
    """Every call that the old release has, between clients and conductors of either release."""

    def test_each_is_answered_as_within_the_old_release(self):
        pairs = [(self.old, self.old), (self.old, self.new), (self.new, self.old)]
        stores = [self.store, self.make_store(), self.make_store()]
        urls = [self.url, *(
            self.useFixture(servers.VirtualHost()).url for _ in range(2))]
        conductors = [self.begin(server, url, store) for (_, server), url, store in zip(
            pairs, urls, stores, strict=True)]
        clients = [self.client(client, url) for (client, _), url in zip(pairs, urls, strict=True)]
        calls = [(method, {"request_id": f"call-{number}", **arguments}
                  if method in clients[0].changes else arguments)
                 for number, (method, arguments) in enumerate(self.calls())]
        for conductor, store in zip(conductors, stores, strict=True):
            self.wait_for(conductor, store)
        expected = self.answers(clients[0], calls, stores[0])
        for (client, server), found in zip(pairs[1:], clients[1:], strict=True):
            answers = self.answers(found, calls, stores[clients.index(found)])
            for (method, _), before, now in zip(calls, expected, answers, strict=True):
                self.assertEqual(before, now, f"{method}: {client.name} to {server.name}")
        self.assertEqual(sorted(clients[0].methods), sorted({method for method, _ in calls}))

    def answers(self, client, calls, store):
        """Make calls; return their answers without the values that differ each time."""
        found = []
        for method, arguments in calls:
            if method in ("get_event_positions", "list_events"):
                wait_until(lambda: not self.count(
                    models.events, models.events.c.position.is_(None), store=store))
            found.append(_comparable(method, client.ask(method, **arguments)))
        return found

    def calls(self):
        """Yield calls: tuples of method and arguments."""
        node, share, server, other, third = (base.new_uuid() for _ in range(5))
        yield "create_provider", {"name": "node", "provider_uuid": node}
        yield "create_provider", {"name": "node", "provider_uuid": share}
        yield "create_provider", {"name": "share", "provider_uuid": share}
        yield "update_provider", {"provider_uuid": share, "name": "disk", "generation": 0}
        yield "set_aggregates", {"provider_uuid": node, "aggregates": [third]}
        yield "get_aggregates", {"provider_uuid": node}
        yield "set_inventory", {"provider_uuid": node, "inventories": [
            inventory("VCPU", 8, max_unit=4, allocation_ratio=2.0),
            inventory("MEMORY_MB", 4096, reserved=512)]}
        yield "set_inventory", {"provider_uuid": node, "inventories": [], "generation": 0}
        yield "add_inventory", {"provider_uuid": share, "inventory": inventory("DISK_GB", 100)}
        yield "add_inventory", {"provider_uuid": share, "inventory": inventory("VCPU", 1)}
        yield "update_inventory", {"provider_uuid": share, "inventory": inventory("DISK_GB", 9)}
        yield "delete_inventory", {"provider_uuid": share, "resource_class": "VCPU"}
        yield "get_inventory", {"provider_uuid": node}
        yield "claim_allocations", {"request_id": "one", "claim": claim(
            {node: {"VCPU": 2, "MEMORY_MB": 1024}, share: {"DISK_GB": 5}}, server)}
        yield "claim_allocations", {"claim": claim({node: {"VCPU": 5}}, other)}
        yield "claim_allocations", {"claim": claim(
            {node: {"VCPU": 1}}, other, consumer_generation=7)}
        yield "claim_batch", {"claims": [claim({node: {"VCPU": 1}}, other), claim(
            {node: {"VCPU": 99}}, third)]}
        yield "move_allocations", {"source_uuid": other, "target_uuid": third}
        yield "claim_by_request", {
            "wanted": request({"VCPU": 1}, member_of=[[third]]), "claim": claim(None, other)}
        yield "release_allocations", {"consumer_uuid": other, "consumer_generation": 1}
        yield "release_allocations", {"consumer_uuid": other}
        yield "get_request_result", {"request_id": "one"}
        yield "get_request_result", {"request_id": "unknown"}
        yield "get_provider", {"provider_uuid": node}
        yield "get_provider", {"provider_uuid": other}
        yield "list_providers", {}
        yield "list_providers", {"member_of": [[third]]}
        yield "get_allocations", {"consumer_uuid": server}
        yield "get_provider_allocations", {"provider_uuid": node}
        yield "get_usages", {"provider_uuid": node}
        yield "get_by_request", {"wanted": request({"VCPU": 2})}
        yield "get_by_request", {"wanted": request({"DISK_GB": 1}, limit=1)}
        yield "explain", {"wanted": request({"VCPU": 9999})}
        yield "resource_class_list", {}
        yield "resource_class_get", {"name": "VCPU"}
        yield "resource_class_create", {"name": "CUSTOM_GOLD"}
        yield "resource_class_create", {"name": "CUSTOM_GOLD"}
        yield "resource_class_rename", {"name": "CUSTOM_GOLD", "new_name": "CUSTOM_SILVER"}
        yield "resource_class_delete", {"name": "CUSTOM_SILVER"}
        yield from self.node_calls(third)
        yield "delete_provider", {"provider_uuid": share}
        yield "ping", {}
        yield "get_versions", {}
        yield "verify_index", {}
        yield "get_event_positions", {}
        yield "list_events", {}

    def node_calls(self, consumer):
        created, synchronised = compute_node(), compute_node()
        _name(synchronised, base.new_uuid())
        data = created["!ComputeNode"]["nova_object.data"]
        yield "object_action", {"objinst": created, "objmethod": "create", "args": [],
                                "kwargs": {}}
        yield "object_class_action_versions", {
            "objname": "ComputeNode", "objmethod": "get_by_host_and_nodename",
            "object_versions": {"ComputeNode": "1.14", "PciDevicePoolList": "1.1",
                                "PciDevicePool": "1.1"},
            "args": [data["host"], data["hypervisor_hostname"]], "kwargs": {}}
        yield "object_backport_versions", {
            "objinst": created, "object_versions": {"ComputeNode": "1.14"}}
        for _ in range(2):
            yield "sync_compute_node", {
                "node": synchronised, "snapshot_at": 1.0e9, "allocations": {consumer: {
                    "project_id": "project", "user_id": "user", "resources": {"VCPU": 2}}}}


# What differs each time.
# The words of an error may change from release to release; its code and its values may not.
_MASKED = frozenset(("created_at", "updated_at", "event_id", "occurred_at", "incident", "text",
                     "message"))
_KEYS_ONLY = frozenset(("ping", "verify_index"))


def _comparable(method, answer):
    """Return an answer without the values that differ each time."""
    result = answer.get("result")
    if method in _KEYS_ONLY:
        return sorted(result)
    if method == "get_versions":
        return [sorted(each) for each in result["objects"]]
    if method == "list_events":
        return [_masked(event) for event in result["events"]]
    return _masked(answer)


def _masked(value):
    if isinstance(value, list):
        return [_masked(each) for each in value]
    if isinstance(value, dict):
        return {name: None if name in _MASKED else _masked(each)
                for name, each in value.items()}
    return value


class RollingTest(ReleasesTest):
    """Two conductors go from the old release to the new one, and back, under load."""

    scenarios = [(kind, {"kind": kind}) for kind in ("postgresql", "mariadb")]

    def test_no_call_fails_and_no_claim_is_lost_or_doubled(self):
        conductors = [self.begin(self.old, self.url, self.store) for _ in range(2)]
        for each in conductors:
            self.wait_for(each, self.store)
        client = self.client(self.new)
        providers = [self.provider(client, 400) for _ in range(4)]
        until = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "until")
        claimers = processes.Claimers([{
            "transport_url": self.url, "providers": providers, "threads": 3,
            "requests": 10_000_000, "until": str(until), "deadline": 90, "casts": 0.2,
            "attempt_timeout": 5, "seed": installation.name}
            for installation in (self.old, self.new)], [self.old.python, self.new.python])
        self.addCleanup(claimers.kill)
        self.settle_some(claimers)
        for installation in (self.new, self.old):
            for conductor in conductors:
                self.end(conductor)
                self.start(conductor, installation)
                self.settle_some(claimers)
        until.touch()
        reports = claimers.results()
        for name in ("accepted", "casts", "moves"):
            # The threads of the old client come first.
            for part in (reports[:3], reports[3:]):
                self.assertGreater(sum(report[name] for report in part), 5)
        ledger.check(self, self.store.database, reports)
        ledger.check_events(self, self.store.database, self.events())

    def settle_some(self, claimers, number=60):
        """Wait until a number of further requests are settled."""
        before = self.count(models.requests)

        def settled():
            self.assertTrue(claimers.running())
            return self.count(models.requests) > before + number

        wait_until(settled)


class FacadeTest(ReleasesTest):
    """The HTTP facades of both releases show one state."""

    scenarios = [(f"{transport} on {kind}", {"transport": transport, "kind": kind})
                 for transport, kind in (("local", "postgresql"), ("local", "mariadb"),
                                         ("rpc", "postgresql"))]

    def setUp(self):
        super().setUp()
        options = {"api": {"transport": self.transport}}
        conductors = []
        if self.transport == "local":
            options["database"] = {"connection": self.store.conf.database.connection}
        else:
            # Either answers either facade.
            options["DEFAULT"] = {"transport_url": self.url}
            conductors = [self.begin(each, self.url, self.store) for each in (self.old, self.new)]
        self.facades = [self.useFixture(side_by_side.Facade(each, options))
                        for each in (self.old, self.new)]
        for each in conductors:
            self.wait_for(each, self.store)

    def send(self, facade, status, method, path, body=None, **headers):
        """Send a request and check its status; returns the response."""
        answer = facade.send(method, path, json=body, headers={
            name.replace("_", "-"): value for name, value in headers.items()})
        self.assertEqual(status, answer.status_code, f"{method} {path}: {answer.text}")
        return answer

    def same(self, path):
        """Check that both facades answer the same; returns the response of one."""
        answers = [self.send(each, 200, "GET", path) for each in self.facades]
        # Each release gives consumers tags of its own.
        tag = "content-length" if path.startswith("/allocations") else "etag"
        first, second = (
            (each.json(), each.headers.get(tag), each.headers.get("content-type"))
            for each in answers)
        self.assertEqual(first, second, path)
        return answers[0]

    def test_each_reads_what_the_other_wrote(self):
        for writer, reader in (self.facades, reversed(self.facades)):
            self.check(writer, reader)

    def check(self, writer, reader):
        uuid, consumer = base.new_uuid(), base.new_uuid()
        pool, allocations = f"/resource_providers/{uuid}", f"/allocations/{consumer}"
        self.send(writer, 201, "POST", "/resource_providers", {"name": uuid, "uuid": uuid})
        # The ETag of one is the precondition of the other.
        etag = self.same(pool).headers["etag"]
        vcpu = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
        self.send(reader, 200, "PUT", f"{pool}/inventories", vcpu, if_match=etag)
        self.send(writer, 412, "PUT", f"{pool}/inventories",
                  {**vcpu, "resource_provider_generation": 1}, if_match=etag)
        self.send(writer, 409, "PUT", f"{pool}/inventories", vcpu)
        self.assertEqual(
            1, self.same(f"{pool}/inventories").json()["resource_provider_generation"])
        self.check_allocations(writer, reader, uuid, consumer)
        self.send(reader, 204, "DELETE", allocations)
        self.assertEqual({}, self.same(allocations).json()["allocations"])
        # An equal key names the request that the other release settled.
        key = base.new_uuid()
        body = {"name": f"new {uuid}"}
        first, second = (self.send(each, 200, "PUT", pool, body, idempotency_key=key)
                         for each in (writer, reader))
        self.assertEqual(first.json(), second.json())
        self.send(reader, 409, "PUT", pool, {"name": f"other {uuid}"}, idempotency_key=key)
        self.same(pool)
        self.same("/resource_providers")
        self.same("/resource_classes")
        self.send(writer, 204, "DELETE", pool)
        self.send(reader, 404, "GET", pool)

    def check_allocations(self, writer, reader, uuid, consumer):
        body = {"allocations": [{"resource_provider": {"uuid": uuid}, "resources": {"VCPU": 3}}]}
        self.send(writer, 204, "PUT", f"/allocations/{consumer}", body)
        self.assertEqual({"VCPU": 3}, self.same(
            f"/allocations/{consumer}").json()["allocations"][uuid]["resources"])
        self.same(f"/resource_providers/{uuid}/allocations")
        self.assertEqual({"VCPU": 3}, self.same(
            f"/resource_providers/{uuid}/usages").json()["usages"])
        self.send(reader, 409, "PUT", f"/allocations/{base.new_uuid()}", body)
        # The key names the request that the other release settled, though the owner of the
        # consumer was not known then, and one of the two reads it first.
        for each in (consumer, base.new_uuid()):
            body["allocations"][0]["resources"]["VCPU"] = 1
            key = base.new_uuid()
            for facade in (writer, reader, writer):
                self.send(facade, 204, "PUT", f"/allocations/{each}", body, idempotency_key=key)
            body["allocations"][0]["resources"]["VCPU"] = 2
            for facade in (writer, reader):
                self.send(facade, 409, "PUT", f"/allocations/{each}", body, idempotency_key=key)
            # The tag of each release is known to itself, and to no other.
            for facade, amount in ((writer, 2), (reader, 1)):
                body["allocations"][0]["resources"]["VCPU"] = amount
                tag = self.send(facade, 200, "GET", f"/allocations/{each}").headers["etag"]
                self.send(facade, 204, "PUT", f"/allocations/{each}", body, if_match=tag)
                self.send(facade, 412, "DELETE", f"/allocations/{each}", if_match=tag)
        self.send(writer, 204, "DELETE", f"/allocations/{each}")
