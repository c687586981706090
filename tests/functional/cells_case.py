# SPDX-License-Identifier: Apache-2.0
"""Two services as cells, and a client of both."""

import functools
import itertools

from placement_rpc import conf as configuration
from placement_rpc.cells import Cell, CellsAPI
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base


class CellsCase(base.TestCase):
    """A service in the region ``upper`` and one in ``lower``, each with an aggregate."""

    cell_timeout = 20.0

    def setUp(self):
        super().setUp()
        self.services = {
            name: self.useFixture(placement_fixtures.RunningService("local"))
            for name in ("north", "south")}
        self.conf = configuration.new_config(
            config_files=[], placement_client__cell_timeout=self.cell_timeout,
            placement_client__deadline=40.0)
        self.racks = {name: base.new_uuid() for name in self.services}
        self.api = self.make_api()
        self.nodes = {name: self.provider(name) for name in self.services}

    def make_api(self):
        """Return a client that remembers nothing."""
        return CellsAPI(self.conf, [
            Cell(name, service.api, region, [self.racks[name]])
            for (name, service), region in zip(
                self.services.items(), ("upper", "lower"), strict=True)])

    def provider(self, cell, vcpus=8):
        """Create a provider in a cell, and in its aggregate; return its uuid."""
        uuid = self.api.only(cell=cell).create_provider(None, f"node {base.new_uuid()}").uuid
        self.api.set_inventory(None, uuid, [base.inventory("VCPU", vcpus)])
        self.api.set_aggregates(None, uuid, [self.racks[cell]])
        return uuid

    def claim(self, *cells, consumer=None, vcpus=1, **values):
        """Return a claim of a part of one node of each of the cells."""
        return base.claim({self.nodes[cell]: {"VCPU": vcpus} for cell in cells}, consumer,
                          **values)

    def held(self, cell, consumer):
        """Return what a consumer has in a cell."""
        return self.services[cell].api.get_allocations(None, consumer).by_provider()

    def intercept(self, cell, method, deliver):
        """Have a function make the calls of a method in a cell; it gets a function that does it.

        :param deliver: called with a function without arguments, which makes the call
        """
        sender = self.services[cell].api.sender
        call = sender.call

        def intercepted(context, name, arguments, timeout):
            make = functools.partial(call, context, name, arguments, timeout)
            return deliver(make) if name == method else make()

        self.patch(sender, "call", intercepted)

    def lose(self, cell):
        """Have a cell not be reached from now on."""
        self.useFixture(placement_fixtures.FaultyCaller(
            self.services[cell].api, itertools.repeat("lost")))
