# SPDX-License-Identifier: Apache-2.0
"""The fixtures that the peer's gabbi files name, on processes of this service.

They are the peer's own classes: a private copy of their module is loaded in which the helpers
that write to its database, and the fixtures that configure it, are those of this directory.
"""

import functools
import importlib.util
import json
import os
import pathlib
import sys
import types
import unittest.mock
import urllib.parse
import uuid

import fixtures
from gabbi import fixture as gabbi_fixture
from placement import policies

from tests.conformance import peer_loader

_MODULE = "placement.tests.functional.fixtures.gabbits"
# Environment variables of the requests, each with a new uuid.
_UUIDS = (
    "RP_UUID", "RP_NAME", "RP_UUID1", "RP_NAME1", "RP_UUID2", "RP_NAME2", "PROJECT_ID",
    "ADMIN_PROJECT_ID", "SERVICE_PROJECT_ID", "USER_ID", "PROJECT_ID_ALT", "USER_ID_ALT",
    "INSTANCE_UUID", "MIGRATION_UUID", "CONSUMER_UUID", "PARENT_PROVIDER_UUID",
    "ALT_PARENT_PROVIDER_UUID")
_CLASSES = {"CUSTOM_RES_CLASS": "CUSTOM_IRON_NFV", "CUSTOM_RES_CLASS1": "CUSTOM_IRON_NFV1",
            "CUSTOM_RES_CLASS2": "CUSTOM_IRON_NFV2"}


class _Service(fixtures.Fixture):
    """A service that starts when its address is needed first, with the options until then.

    ``config`` and ``set_rules`` are those of the peer's fixtures of options and of policy rules.
    """

    def __init__(self, make):
        super().__init__()
        self._make = make

    def _setUp(self):
        self._directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._options, self._running = {"api": {"auth_strategy": "noauth2"}}, None

    def config(self, group, **options):
        """Set options of the service."""
        self._options.setdefault(group, {}).update(options)

    def set_rules(self, rules):
        """Set policy rules of the service."""
        path = self._directory / "policy.yaml"
        path.write_text(json.dumps(rules))
        self.config("oslo_policy", policy_file=str(path))

    @property
    def url(self):
        """str, its address"""
        if self._running is None:
            self._running = self.useFixture(self._make(self._options))
        return self._running.url


class _Running:
    """The service of the file that runs in this process."""

    service = None

    @property
    def address(self):
        """Its address, parsed."""
        return urllib.parse.urlsplit(self.service.url)


RUNNING = _Running()


def _start(self):
    """Take the place of ``APIFixture.start_fixture``."""
    self.conf_fixture = self.policy_fixture = RUNNING.service
    self.conf_fixture.config("oslo_policy", enforce_new_defaults=self._secure_rbac)
    self.context = peer_loader.Client(lambda: RUNNING.service.url)
    os.environ.update({name: str(uuid.uuid4()) for name in _UUIDS}, **_CLASSES)


def _stop(self):
    """Take the place of ``APIFixture.stop_fixture``."""
    self.context.close()


@functools.cache
def _module():
    """Return a copy of the peer's module of fixtures that starts this service."""
    found = importlib.util.module_from_spec(importlib.util.find_spec(_MODULE))
    nothing = types.SimpleNamespace()
    replaced = {
        "oslotest": types.SimpleNamespace(output=nothing),
        "placement": types.SimpleNamespace(
            conf=nothing, context=nothing, deploy=nothing, policies=policies),
        "placement.objects": types.SimpleNamespace(**peer_loader.OBJECTS),
        "placement.tests": types.SimpleNamespace(fixtures=nothing),
        "placement.tests.functional.db": types.SimpleNamespace(test_base=peer_loader),
        "placement.tests.functional.fixtures": types.SimpleNamespace(capture=nothing),
        "placement.tests.unit": types.SimpleNamespace(policy_fixture=nothing)}
    with unittest.mock.patch.dict(sys.modules, replaced):
        found.__spec__.loader.exec_module(found)
    found.APIFixture.start_fixture, found.APIFixture.stop_fixture = _start, _stop
    return found


class _Fixture(gabbi_fixture.GabbiFixture):
    """One of the peer's fixtures, on a service of its own.

    :param name: str, of the peer's class
    :param make: callable of a dict of options by group that returns a fixture of a service
    """

    def __init__(self, name, make):
        super().__init__()
        self._name, self._make = name, make

    def start_fixture(self):
        self._environment = dict(os.environ)
        self._service = RUNNING.service = _Service(self._make)
        self._service.setUp()
        self._fixture = getattr(_module(), self._name)()
        self._fixture.start_fixture()

    def stop_fixture(self):
        self._fixture.stop_fixture()
        self._service.cleanUp()
        os.environ.clear()
        os.environ.update(self._environment)


class Fixtures:
    """Takes the place of a module of fixtures: its attributes are their classes, by name.

    :param make: of :class:`_Fixture`
    """

    def __init__(self, make):
        self._make = make

    def __getattr__(self, name):
        return functools.partial(_Fixture, name, self._make)
