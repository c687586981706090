# SPDX-License-Identifier: Apache-2.0
"""nova's report client, openstacksdk and neutron-lib notice no difference.

Each script in :mod:`tests.conformance.clients` is run against openstack-placement, and against
this service on real servers. What each of its steps returned or raised, and the requests that it
took, must be the same.
"""

import atexit
import functools
import uuid

import testscenarios

from tests import base
from tests.conformance import peer_process, transcripts, web

_DELETION = (
    "what is given back raises the generation of its provider here, so that a resource tracker "
    "that has not looked since meets a conflict, reads again and repeats its update")
_ORPHAN = (
    "openstack-placement keeps a consumer of generation 0 that nothing shows, and from then on "
    "refuses the uuid as if it were in use")
# Module, script and step, and why its record is another one here.
_DIFFERENCES = {
    ("nova_compute", "resource_tracker", "after a deletion"): _DELETION,
    ("nova_operator", "nothing_for_nobody", "something"): _ORPHAN,
}


def _started(fixture):
    fixture.setUp()
    atexit.register(fixture.cleanUp)
    return fixture


@functools.cache
def _clients():
    return _started(transcripts.Clients())


@functools.cache
def _service(name):
    make = {"real servers": peer_process.OnRealServers, "SQLite": peer_process.Standalone}[name]
    return _started(make({"api": {"auth_strategy": "noauth2"}})).url.rstrip("/")


class ClientsTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = testscenarios.multiply_scenarios(
        [(f"{module} {name}", {"module": module, "name": name})
         for module, name in transcripts.scripts()],
        [(service, {"service": service})
         for service in ("real servers", *(("SQLite",) if base.FULL else ()))])

    def test_same_as_openstack_placement(self):
        # The same uuids and names on both, and others than any script before.
        self.seed = uuid.uuid4().hex[:8]
        there = self.record("openstack-placement", web.upstream())
        here = self.record(self.service, _service(self.service))
        named = {step for module, name, step in _DIFFERENCES
                 if (module, name) == (self.module, self.name)}
        self.assertEqual([step["step"] for step in there], [step["step"] for step in here])
        for its, ours in zip(there, here, strict=True):
            if ours["step"] in named:
                self.assertNotEqual(its, ours, f"{ours['step']}: there is no difference any more")
            else:
                self.assertEqual(its, ours, ours["step"])

    def record(self, server, url):
        """Run the script against a server; return what is compared of its steps."""
        found = _clients().run(self.module, self.name, url, self.seed)
        if "failed" in found:
            self.fail(f"{server}, step {found['steps'][-1]['step']}:\n{found['failed']}")
        return transcripts.comparable(found["steps"])


class DifferencesTest(base.TestCase):

    def test_those_listed_are_of_scripts_that_there_are(self):
        self.assertLessEqual({(module, name) for module, name, _ in _DIFFERENCES},
                             set(transcripts.scripts()))
