# SPDX-License-Identifier: Apache-2.0
"""The last release and this tree on one store and one broker.

The release is its wheel, installed in an environment of its own; see
:mod:`tests.environments`. "Old" is that release and "new" this tree.
"""

import signal
from typing import NamedTuple

import fixtures
import sqlalchemy as sa
import testscenarios

from placement_rpc.db import models
from placement_rpc.notifications import listener
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, compute_nodes, environments, servers
from tests.environments import THIS_TREE
from tests.upgrade import side_by_side

VERSION = "0.2.0"

# Each direction once, and with it each database once.
DIRECTIONS = [
    ("old to new on postgresql", {"kind": "postgresql", "is_forward": True}),
    ("new to old on mariadb", {"kind": "mariadb", "is_forward": False}),
]


# What this tree says of providers and their lists, and the old release does not.
_NEWS = ("parent_provider_uuid", "root_provider_uuid", "updated_at", "more")


def without_news(value):
    """Return the part of a dict that the old release knows; other values are returned as they are.
    """
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name not in _NEWS
            and not (name == "position" and each is None)}


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


def name_node(node, uuid):
    """Give a ComputeNode a uuid, and names that no other has."""
    node["!ComputeNode"]["nova_object.data"].update(
        uuid=uuid, host=f"host-{uuid}", hypervisor_hostname=f"node-{uuid}")


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
        self.old = environments.release(VERSION)
        self.new = THIS_TREE
        super().setUp()
        self.broker = self.make_broker()
        self.url = self.broker.url
        self.store = self.make_store()

    def make_broker(self):
        return self.useFixture(servers.VirtualHost())

    def new_database(self):
        """Return the URL of an empty database."""
        return servers.new_empty_database(self.kind)

    def make_store(self):
        database = self.new_database()
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

        base.wait_until(serves, message=conductor.said)

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
        base.wait_until(self.all_published, message=lambda: str(self.relayed()))
        last = self.relayed().last
        found = []
        for event in listener.StreamReader(self.url, "placement_events", 1).events(60):
            found.append(event)
            if event.position == last:
                break
        return found
