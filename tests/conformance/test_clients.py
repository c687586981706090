# SPDX-License-Identifier: Apache-2.0
"""nova's report client, openstacksdk and neutron-lib notice no difference.

Each script in :mod:`tests.conformance.clients` is run against openstack-placement, and against
this service on real servers. What each of its steps returned or raised, and the requests that it
took, must be the same.
"""

import atexit
import functools
import time
import uuid

import testscenarios

from placement_rpc.db.queries import hold
from placement_rpc.testing.facade import Facade
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
def _peer(service):
    """Return the address of an openstack-placement that holds what one service holds.

    Some scripts see what others have left.
    """
    return _started(web.Upstream(durable=False)).url.rstrip("/")


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
        there = self.record("openstack-placement", _peer(self.service))
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


class HeldTest(base.TestCase):
    """nova bears that the store is held while a cloud moves over, and goes on by itself."""

    def test_during_an_import(self):
        service = self.useFixture(Facade())
        seed = uuid.uuid4().hex[:8]

        def run(name):
            began = time.monotonic()
            found = _clients().run("nova_held", name, service.url.rstrip("/"), seed)
            self.assertNotIn("failed", found)
            # No request waits until the store is released.
            self.assertLess(time.monotonic() - began, 20)
            return {step["step"]: step for step in found["steps"]}

        before = run("before")
        service.database.write(lambda tx: hold.set_(tx, "an import runs"))
        held = run("held")
        for title in ("claim", "put", "move"):
            self.assertIs(False, held[title]["returned"], title)
        refused = [request for step in held.values() for request in step["requests"]
                   if request["request"].split()[0] != "GET"]
        self.assertEqual({503}, {request["status"] for request in refused})
        self.assertEqual({"placement.store.held"},
                         {code for request in refused for code in request["codes"]})
        self.assertEqual(before["held"]["returned"], held["read"]["returned"])
        self.assertTrue(held["candidates"]["returned"][0])
        service.database.write(hold.release)
        released = run("released")
        self.assertEqual(before["held"]["returned"], released["read"]["returned"])
        for title in ("claim", "put", "move", "move back", "delete"):
            self.assertIs(True, released[title]["returned"], title)


class DifferencesTest(base.TestCase):

    def test_those_listed_are_of_scripts_that_there_are(self):
        self.assertLessEqual({(module, name) for module, name, _ in _DIFFERENCES},
                             set(transcripts.scripts()))
