# SPDX-License-Identifier: Apache-2.0
"""The base of the tests that run commands of osc-placement against each server."""

import testscenarios
import testtools
from osc_placement import version as known

from tests import base
from tests.conformance import commands, web

_BORDERS = ("1.0", "1.4", "1.8", "1.14", "1.19", "1.28", "1.39")
PROJECT, USER = "blue", "ada"


def since(first):
    """Return scenarios of every server at every version from ``first`` on."""
    return testscenarios.multiply_scenarios(
        [(name, {"server": name}) for name in web.SERVERS],
        # The test runner would take a dot for the end of a class name.
        [(version.replace(".", "_"), {"version": version})
         for version in known.SUPPORTED_MICROVERSIONS if _minor(version) >= _minor(first)
         and (base.FULL or version == first or version in _BORDERS)])


def _minor(version):
    return int(version.partition(".")[2])


class CommandTest(testscenarios.WithScenarios, base.TestCase):
    """Commands at each version that has them, against each server."""

    scenarios = since("1.0")

    def setUp(self):
        super().setUp()
        openstack = self.useFixture(
            commands.OpenStack(web.SERVERS[self.server](), self.version))
        self.run_command, self.show = openstack.run, openstack.show
        self.minor = _minor(self.version)

    @property
    def is_ours(self):
        return self.server == "placement_rpc"

    def row(self, uuid, name, generation=0, root=None, parent=None):
        """Return a provider as the commands show it."""
        return {"uuid": uuid, "name": name, "generation": generation, **(
            {"root_provider_uuid": root or uuid, "parent_provider_uuid": parent}
            if self.minor >= 14 else {})}

    def generation(self, uuid):
        return self.show("resource provider show", uuid)["generation"]

    def trait(self):
        """Return the name of a new trait."""
        name = f"CUSTOM_{base.new_uuid().upper().replace('-', '_')}"
        self.run_command("trait create", name)
        return name

    def set_traits(self, uuid, *names):
        return [row["name"] for row in self.show("resource provider trait set", uuid, *(
            part for each in names for part in ("--trait", each)))]

    def take(self, consumer, *allocations, project=PROJECT, kind="INSTANCE"):
        """Set the allocations of a consumer; return the rows."""
        options = [part for each in allocations for part in ("--allocation", each)]
        if self.minor >= 8:
            options += ["--project-id", project, "--user-id", USER]
        if self.minor >= 38:
            options += ["--consumer-type", kind]
        return self.show("resource provider allocation set", consumer, *options)

    def refused(self, words, command, *arguments):
        """Check that a command ends with an error of these words."""
        with testtools.ExpectedException(commands.CommandFailed, f"(?s).*{words}"):
            self.run_command(command, *arguments)

    def provider(self, **totals):
        """Return the uuid of a new provider with these inventories."""
        name = f"provider {base.new_uuid()}"
        uuid = self.show("resource provider create", name)["uuid"]
        if totals:
            self.inventories(uuid, *(f"{name}={total}" for name, total in totals.items()))
        return uuid

    def inventories(self, uuid, *resources):
        return self.show("resource provider inventory set", uuid, *(
            part for each in resources for part in ("--resource", each)))


