# SPDX-License-Identifier: Apache-2.0
"""OpenStack Placement's own tests of its HTTP API, as tests of this service.

They are the gabbi files of the installed openstack-placement. The requests of a file follow each
other on a service with an empty store.
"""

import importlib.util
import pathlib

import yaml
from gabbi import handlers, httpclient, suitemaker

from tests.conformance import peer_differences, peer_fixtures

_DIRECTORY = pathlib.Path(
    importlib.util.find_spec("placement").origin).parent / "tests/functional/gabbits"
# The requests are sent to the address of the fixture, which is not known before it starts.
_HOST = "placement"
# Written in C, where PyYAML was built with it: all files are read whenever tests are listed.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _AddressPart:
    """An attribute of a test: a part of the address of the running service."""

    def __init__(self, name):
        self._name = name

    def __get__(self, test, test_class):
        return getattr(peer_fixtures.RUNNING.address, self._name)


def files():
    """Return the names of the gabbi files, without suffix, in order."""
    return sorted(path.stem for path in _DIRECTORY.glob("*.yaml"))


def content(file):
    """Return what a file holds: a dict with the list ``tests``."""
    return yaml.load((_DIRECTORY / f"{file}.yaml").read_bytes(), _Loader)


def suite(loader, module, file, make):
    """Return the tests of a file.

    :param module: str, the module to which they belong
    :param make: callable of a dict of options by group that returns a fixture of a service
    """
    found = content(file)
    # No certificate is checked: to read the certificates for each test takes half a minute.
    found.setdefault("defaults", {})["cert_validate"] = False
    peer_differences.mark(file, found["tests"])
    tests = suitemaker.test_suite_from_dict(
        loader, file, found, str(_DIRECTORY), _HOST, None, peer_fixtures.Fixtures(make), None,
        handlers=[each() for each in handlers.RESPONSE_HANDLERS], test_loader_name=module)
    # One connection for the requests of a file.
    http = httpclient.get_http(cert_validate=False)
    for test in tests:
        test_class = type(test)
        test_class.http = http
        test_class.host, test_class.port = _AddressPart("hostname"), _AddressPart("port")
    return tests
