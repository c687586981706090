# SPDX-License-Identifier: Apache-2.0
"""What the peer's fixtures write to its database, written through this project's HTTP API.

The names are those of the helpers in ``placement.tests.functional.db.test_base``, which the
fixtures call, and of the objects that they create themselves.

A consumer exists here as long as it has allocations, so :func:`ensure_consumer` writes nothing,
and neither do users and projects: :func:`set_allocation` names all three.
"""

import dataclasses
import types
import uuid

import requests
from oslo_utils.fixture import uuidsentinel

_TIMEOUT = 60
_CUSTOM = "CUSTOM_"


class Client:
    """Sends requests as an administrator.

    :param url: callable that returns the address of the service
    """

    def __init__(self, url):
        self._url = url
        self._session = requests.Session()
        self._session.headers["x-auth-token"] = "admin"

    def send(self, method, path, version, body=None):
        """Send a request and return the JSON of its answer, None if it has no body.

        :raises AssertionError: if it is refused
        """
        answer = self._session.request(
            method, self._url() + path, json=body, timeout=_TIMEOUT,
            headers={"openstack-api-version": f"placement {version}"})
        if not answer.ok:
            raise AssertionError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def close(self):
        """Close the connections."""
        self._session.close()


@dataclasses.dataclass
class Provider:
    """A provider that a fixture has created."""

    client: Client
    uuid: str

    @property
    def path(self):
        """str, its address"""
        return f"/resource_providers/{self.uuid}"

    def set_aggregates(self, aggregates):
        """Put it into these aggregates and no others."""
        self.client.send("PUT", f"{self.path}/aggregates", "1.1", list(aggregates))


class ResourceClass:
    """A custom resource class."""

    def __init__(self, context, name):
        self._client, self._name = context, name

    def create(self):
        """Create it."""
        self._client.send("PUT", f"/resource_classes/{self._name}", "1.7")


class _Named:
    """A user or a project."""

    def __init__(self, context, external_id):
        self.external_id = external_id

    def create(self):
        """Write nothing: they come into being with allocations."""


@dataclasses.dataclass
class Consumer:
    """A consumer that has no allocations yet."""

    uuid: str
    user: _Named
    project: _Named


def create_provider(context, name, *aggregates, parent=None, **values):
    """Create a provider."""
    found = Provider(context, values.get("uuid") or getattr(uuidsentinel, name))
    body = {"name": name, "uuid": found.uuid}
    if parent:
        body["parent_provider_uuid"] = parent
    context.send("POST", "/resource_providers", "1.14" if parent else "1.0", body)
    if aggregates:
        found.set_aggregates(aggregates)
    return found


def add_inventory(provider, resource_class, total, **values):
    """Add an inventory, and create its class if it is a custom one."""
    if resource_class.startswith(_CUSTOM):
        ResourceClass(provider.client, resource_class).create()
    provider.client.send("POST", f"{provider.path}/inventories", "1.0", {
        "resource_class": resource_class, "total": total, "max_unit": total, **values})


def set_traits(provider, *traits):
    """Set the traits of a provider, and create those that are custom ones."""
    path = f"{provider.path}/traits"
    for trait in traits:
        if trait.startswith(_CUSTOM):
            provider.client.send("PUT", f"/traits/{trait}", "1.6")
    provider.client.send("PUT", path, "1.6", {
        **provider.client.send("GET", path, "1.6"), "traits": list(traits)})


def ensure_consumer(context, user, project, consumer_id=None):
    """Return a consumer, a new one unless an id is given."""
    return Consumer(consumer_id or str(uuid.uuid4()), user, project)


def set_allocation(context, provider, consumer, resources):
    """Set the allocations of a consumer."""
    context.send("PUT", f"/allocations/{consumer.uuid}", "1.8", {
        "allocations": [{"resource_provider": {"uuid": provider.uuid}, "resources": resources}],
        "user_id": consumer.user.external_id, "project_id": consumer.project.external_id})


def create_user_and_project(context, prefix="fake"):
    """Return a user and a project."""
    return _Named(context, f"{prefix}-user"), _Named(context, f"{prefix}-project")


#: The modules of the peer's objects that the fixtures use, by name
OBJECTS = {"user": types.SimpleNamespace(User=_Named),
           "project": types.SimpleNamespace(Project=_Named),
           "resource_class": types.SimpleNamespace(ResourceClass=ResourceClass)}
