# SPDX-License-Identifier: Apache-2.0
"""Two cells on real servers: two virtual hosts, and a database of each kind."""

import pathlib

import fixtures

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.cells import CellsAPI
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers

_DATABASES = {"north": "postgresql", "south": "mariadb"}


class CellsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.racks = {name: base.new_uuid() for name in _DATABASES}
        self.services, groups = {}, [f"[placement_client]\ncells = {', '.join(_DATABASES)}"]
        for name, kind in _DATABASES.items():
            url = self.useFixture(servers.VirtualHost()).url
            self.services[name] = self.useFixture(placement_fixtures.RunningService(
                transport_url=url, database_url=servers.new_database(kind), topic="placement"))
            groups.append(f"[cell:{name}]\ntransport_url = {url}\naggregates = "
                          f"{self.racks[name]}")
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "placement-rpc.conf")
        path.write_text("\n".join(groups))
        self.conf = configuration.new_config(
            config_files=[str(path)], placement_client__cell_timeout=2.0,
            placement_client__deadline=30.0)
        self.cells = self.useFixture(_Client(self.conf)).api

    def node(self, cell):
        """Create a provider in a cell; return its uuid."""
        uuid = self.cells.only(cell=cell).create_provider(None, f"node of {cell}").uuid
        self.cells.set_inventory(None, uuid, [base.inventory("VCPU", 4)])
        self.cells.set_aggregates(None, uuid, [self.racks[cell]])
        return uuid

    def find(self, **values):
        return {each.uuid for each in self.cells.get_by_request(
            None, api.ResourceRequest(resources={"VCPU": 1}, **values)).objects}

    def test_claims_in_both_and_the_loss_of_one(self):
        nodes = {name: self.node(name) for name in _DATABASES}
        self.assertEqual(set(nodes.values()), self.find())
        self.assertEqual({nodes["south"]}, self.find(member_of=[[self.racks["south"]]]))
        claims = {name: base.claim({uuid: {"VCPU": 2}}, consumer_generation=0)
                  for name, uuid in nodes.items()}
        for each in self.cells.claim_batch(None, list(claims.values())):
            self.assertEqual(1, each.consumer_generation)
        for name, service in self.services.items():
            held = service.api.get_allocations(None, claims[name].consumer_uuid)
            self.assertEqual({nodes[name]: {"VCPU": 2}}, held.by_provider())
        self.assertRaises(exception.SeveralCells, self.cells.claim_allocations, None, base.claim(
            {uuid: {"VCPU": 1} for uuid in nodes.values()}))
        # A client that remembers nothing: a claim by a cast is settled, and found by its id.
        other = self.useFixture(_Client(self.conf)).api
        request_id = other.claim_allocations(None, base.claim(
            {nodes["south"]: {"VCPU": 1}}, claims["south"].consumer_uuid), cast=True)
        base.wait_until(lambda: self.settled(other, request_id))
        self.assertEqual({"VCPU": 3}, self.cells.get_project_usages(None, "project").usages)
        # Without the service of one cell, the other goes on.
        self.services["south"].conductor.stop()
        self.assertEqual({nodes["north"]}, self.find())
        found = self.cells.claim_by_request(
            None, api.ResourceRequest(resources={"VCPU": 1}),
            base.claim(None, consumer_generation=0))
        self.assertEqual([nodes["north"]], list(found.generations))
        self.cells.release_allocations(None, claims["north"].consumer_uuid)
        error = self.assertRaises(exception.CellUnreachable, self.cells.get_project_usages, None,
                                  "project", timeout=1)
        self.assertEqual("south", error.kwargs["cells"])

    @staticmethod
    def settled(client, request_id):
        try:
            return client.get_request_result(None, request_id).result()
        except exception.RequestNotFound:
            return None


class _Client(fixtures.Fixture):
    """A client of the cells of a configuration; ``api``."""

    def __init__(self, conf):
        super().__init__()
        self._conf = conf

    def _setUp(self):
        self.api = CellsAPI(self._conf)
        self.addCleanup(self.api.close)
