# SPDX-License-Identifier: Apache-2.0
"""What tests of compute nodes share."""

import contextlib
import json

import sqlalchemy as sa

from placement_rpc.context import RequestContext
from placement_rpc.db import models
from placement_rpc.db.queries import services
from placement_rpc.nova import importer
from placement_rpc.objects.nova.base import NovaObject
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.upgrade import gate, online
from tests import base


class NodeTest(base.ContractTest):
    """A test with nodes, which it handles as a compute host does: over the bus."""

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, NovaObject, "indirection_api", None)
        NovaObject.indirection_api = self.api
        self.context = RequestContext()
        self.database = self.service.database

    def bring_in(self, *lines):
        work = importer.Import(self.database, self.service.conf.compute_nodes)
        work.bring_in([(f"line {number}", line) for number, line in enumerate(lines)])
        self.assertEqual([], work.done.refused)

    def migrate(self, limit=None, **how):
        settings = gate.InventoryGate(self.service.conf, self.database).settings
        return online.compute_node_inventories(self.database, settings, limit, **how)

    def rows(self, query):
        with self.database.reader() as tx:
            return tx.execute(query).all()

    def row(self, name):
        found, = self.rows(sa.select(models.compute_nodes).where(
            models.compute_nodes.c.hypervisor_hostname == name))
        return found

    def events(self):
        """Return the events since the last call, as (type, data)."""
        found = self.rows(sa.select(models.events).where(
            models.events.c.id > getattr(self, "seen", 0)).order_by(models.events.c.id))
        self.seen = found[-1].id if found else getattr(self, "seen", 0)
        return [(row.event_type, json.loads(row.payload)["placement_object.data"])
                for row in found]

    def types(self):
        return [event_type for event_type, _ in self.events()]

    def inventory(self, uuid):
        return {each.resource_class: (each.total, each.reserved, each.max_unit,
                                      each.allocation_ratio)
                for each in self.api.get_inventory(None, uuid).objects}

    def stored(self, **values):
        """A node, created from a compute host."""
        new = node(uuid=base.new_uuid(), context=self.context, **values)
        new.create()
        return new

    @contextlib.contextmanager
    def old_service(self, version="0.1.0", rpc_version="1.0"):
        """A conductor of the release before is alive."""
        identity = {"binary": "placement-rpc-conductor", "host": "old.example.org", "worker": 3}
        self.database.write(lambda tx: services.beat(
            tx, identity, {"version": version, "rpc_version": rpc_version}, True))
        yield
        self.database.write(lambda tx: services.remove(tx, identity))


def node(name="cmp1.example.org", **values):
    """A node, small enough to look at."""
    return ComputeNode(**{
        "host": "cmp1", "hypervisor_hostname": name, "hypervisor_type": "QEMU",
        "hypervisor_version": 6002000, "vcpus": 8, "memory_mb": 16384, "local_gb": 200,
        "vcpus_used": 0, "memory_mb_used": 512, "local_gb_used": 0, "cpu_allocation_ratio": 4.0,
        "ram_allocation_ratio": 0.0, "disk_allocation_ratio": None, "stats": {"io": "0"},
        **values})
