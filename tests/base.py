# SPDX-License-Identifier: Apache-2.0
"""Base classes and helpers of the tests."""

import os
import uuid

import fixtures
import testscenarios
import testtools

from placement_rpc.db.queries import events
from placement_rpc.objects.claim import Claim
from placement_rpc.objects.inventory import Inventory
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.testing import fixtures as placement_fixtures
from placement_rpc.testing.waiting import wait_until
from tests import no_io

#: Whether long tests run in full (``make test FULL=1``) instead of as a short sample.
FULL = bool(os.environ.get("FULL"))


def examples(sample):
    """Return how many examples hypothesis tries: ``sample``, or ten times as many in full."""
    return 10 * sample if FULL else sample


def new_uuid():
    """Return a new UUID as a str."""
    return str(uuid.uuid4())


def wait_published(database, seconds=60):
    """Wait until a relay has published every committed event; return the last position."""
    def status():
        with database.reader() as tx:
            return events.status(tx)

    def is_published():
        found = status()
        return not found["unpositioned"] and (
            found["published_position"] == found["last_position"])

    wait_until(is_published, seconds, lambda: str(status()))
    return status()["last_position"]


class TestCase(testtools.TestCase):
    """A test with its own log and time limit."""

    time_limit = 120

    def setUp(self):
        super().setUp()
        if type(self).__module__.startswith("tests.unit."):
            self.enterContext(no_io.refused())
        self.useFixture(fixtures.Timeout(self.time_limit, gentle=True))
        self.log = self.useFixture(fixtures.FakeLogger())


class ContractTest(testscenarios.WithScenarios, TestCase):
    """A test of the contract, in this process; tests/integration runs it over RabbitMQ."""

    scenarios = []
    options = {}

    def service_arguments(self):
        """Return the arguments of the running service; a subclass puts it on real servers."""
        return {"transport": "local"}

    def setUp(self):
        super().setUp()
        self.service = self.useFixture(placement_fixtures.RunningService(
            **self.service_arguments(), **self.options))
        self.api = self.service.api

    def provider(self, name=None, **inventories):
        """Create a provider with inventories, each a total or a dict; return its uuid."""
        provider = self.api.create_provider(None, name or f"provider {new_uuid()}")
        if inventories:
            self.api.set_inventory(None, provider.uuid, [
                inventory(resource_class, values)
                for resource_class, values in inventories.items()])
        return provider.uuid

    def claim(self, allocations, consumer=None, request_id=None, timeout=None, **values):
        """Claim for a new consumer, or the one given; return its uuid and the result."""
        wanted = claim(allocations, consumer, **values)
        return wanted.consumer_uuid, self.api.claim_allocations(
            None, wanted, request_id=request_id, timeout=timeout)

    def used(self, provider):
        """Return the used amounts of a provider, by class."""
        return {each.resource_class: each.used
                for each in self.api.get_usages(None, provider).objects}

    def held(self, consumer):
        """Return the allocations of a consumer, by provider and class."""
        return self.api.get_allocations(None, consumer).by_provider()

    def find(self, resources, **values):
        """Return the uuids of the providers with room."""
        return [each.uuid for each in self.api.get_by_request(
            None, ResourceRequest(resources=resources, **values)).objects]

    def generation(self, provider):
        return self.api.get_provider(None, provider).generation


def inventory(resource_class, values):
    """Return an inventory with a total or a dict of values."""
    values = values if isinstance(values, dict) else {"total": values}
    return Inventory(resource_class=resource_class, **values)


def claim(allocations, consumer=None, **values):
    """Return a claim; its project and user are arbitrary unless they are given."""
    return Claim(consumer_uuid=consumer or new_uuid(), allocations=allocations,
                 **{"project_id": "project", "user_id": "user", **values})


def without_order(primitive):
    """Return an object's primitive form with the names of its changed fields sorted.

    They are written in the order of a set, which differs from one process to the next.
    """
    if isinstance(primitive, dict):
        return {key: sorted(value) if key.endswith(".changes") else without_order(value)
                for key, value in primitive.items()}
    return ([without_order(each) for each in primitive]
            if isinstance(primitive, list) else primitive)


def objects_in(value):
    """Yield the name and the version of every object in JSON values of the bus."""
    if isinstance(value, dict):
        for namespace in ("placement_object", "nova_object"):
            if f"{namespace}.name" in value:
                yield value[f"{namespace}.name"], value[f"{namespace}.version"]
        for item in value.values():
            yield from objects_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from objects_in(item)
