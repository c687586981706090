# SPDX-License-Identifier: Apache-2.0
"""OpenStack Placement's own tests of its HTTP API, run against this service.

They are the gabbi files of the installed openstack-placement. The requests of a file follow each
other on a service with an empty store. Run those of one file with
``python -m stestr run 'test_peer_suite.FILE_'``.
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


def _suite(loader, path, fixtures):
    """Return the tests of a file.

    :param fixtures: :class:`tests.conformance.peer_fixtures.Fixtures`
    """
    content = yaml.load(path.read_bytes(), _Loader)
    # No certificate is checked: to read the certificates for each test takes half a minute.
    content.setdefault("defaults", {})["cert_validate"] = False
    peer_differences.mark(path.stem, content["tests"])
    suite = suitemaker.test_suite_from_dict(
        loader, path.stem, content, str(_DIRECTORY), _HOST, None, fixtures, None,
        handlers=[each() for each in handlers.RESPONSE_HANDLERS], test_loader_name=__name__)
    # One connection for the requests of a file.
    http = httpclient.get_http(cert_validate=False)
    for test in suite:
        test_class = type(test)
        test_class.http = http
        test_class.host, test_class.port = _AddressPart("hostname"), _AddressPart("port")
    return suite


def load_tests(loader, tests, _pattern):
    fixtures = peer_fixtures.Fixtures()
    for path in sorted(_DIRECTORY.glob("*.yaml")):
        tests.addTest(_suite(loader, path, fixtures))
    return tests
