# SPDX-License-Identifier: Apache-2.0
"""Programs that log in with a password and find the service in keystone's catalogue."""

import json
import os
import pathlib
import re
import subprocess
import sys

import openstack
import requests
from keystoneauth1 import session

from tests import base, keystone_server
from tests.conformance import keystone_case, peer_process
from tests.conformance.keystone_case import OURS, PEER

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "source" / "security.rst"
_ADDRESS = "https://placement.example.org"


def _blocks():
    """Return the commands of the documentation of the catalogue: a list of scripts."""
    section = re.search(r"^The user and the catalogue\n-+\n(.*?)^Who may do what$",
                        _PAGE.read_text(), re.MULTILINE | re.DOTALL)[1]
    return [re.sub("^    ", "", block.rstrip(), flags=re.MULTILINE)
            for block in re.findall(r"::\n\n((?:    .*\n|\n)+)", section)]


class CatalogueTest(keystone_case.KeystoneTest):
    """An administrator makes the entry as documented, and services use it."""

    time_limit = 300

    def setUp(self):
        super().setUp()
        self.keystone = self.useFixture(keystone_server.Keystone())
        self.servers = self.useFixture(keystone_case.Servers(self.keystone))
        self.ours, self.peer = (self.servers.urls[name] for name in (OURS, PEER))

    def run_script(self, script, user="admin", project="admin"):
        """Run a shell script as a user; return what it prints."""
        script = script.replace("RegionOne", keystone_server.REGION)
        environment = {name: value for name, value in os.environ.items() if name[:3] != "OS_"}
        done = subprocess.run(
            ["bash", "-eu", "-c", script], check=False, capture_output=True, text=True, env={
                **environment, "XDG_CONFIG_HOME": "/nonexistent", "PYTHONWARNINGS": "ignore",
                "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
                **self.keystone.environment(user, project)})
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def test_documented_commands(self):
        create, switch, look = _blocks()
        self.assertEqual(3, create.count(_ADDRESS))
        # It is that of the other service first.
        self.run_script(create.replace(_ADDRESS, self.peer).replace("PASSWORD", "placement"))
        listing, change = switch.splitlines()
        name = base.new_uuid()
        self.add_provider(name)
        self.assertIn(name, self.provider_names(self.peer))
        for each in json.loads(self.run_script(f"{listing} --format json")):
            self.assertEqual(self.peer, each["URL"])
            self.run_script(change.replace(_ADDRESS, self.ours).replace("ENDPOINT", each["ID"]))
        other = base.new_uuid()
        self.add_provider(other)
        self.assertEqual([other], self.provider_names(self.ours))
        shown = self.run_script(look, "nova", "service")
        for words in (other, self.ours, "1.39", "CURRENT"):
            self.assertIn(words, shown)

    def add_provider(self, name):
        """Make a provider with an inventory by osc-placement, and check what it shows."""
        shown = self.run_script(
            "export OS_PLACEMENT_API_VERSION=1.39\n"
            f"uuid=$(openstack resource provider create {name} -f value -c uuid)\n"
            "openstack resource provider inventory set $uuid --resource VCPU=8 -f json\n",
            "nova", "service")
        self.assertEqual([("VCPU", 8)], [
            (each["resource_class"], each["total"]) for each in json.loads(shown)])

    def provider_names(self, url):
        return [each["name"] for each in self.send(url, "GET /resource_providers", (
            self.keystone.token("nova", "service"))).json()["resource_providers"]]


class DiscoveryTest(keystone_case.KeystoneTest):
    """Libraries find address and microversions, also of a service below a path."""

    def setUp(self):
        super().setUp()
        self.keystone = keystone_server.shared()
        self.url = self.useFixture(peer_process.Facade(
            {"api": {"auth_strategy": "keystone"},
             "keystone_authtoken": self.keystone.middleware()},
            environment={"SCRIPT_NAME": "/placement"})).url + "/placement"
        service = self.keystone.add_service("placement", self.url)
        self.addCleanup(self.keystone.client().services.delete, service)

    def test_keystoneauth(self):
        data = session.Session(auth=self.keystone.plugin("nova", "service")).get_endpoint_data(
            service_type="placement", interface="public", region_name=keystone_server.REGION)
        self.assertEqual((self.url, (1, 0), (1, 39)), (
            data.url.rstrip("/"), data.min_microversion, data.max_microversion))

    def test_openstacksdk(self):
        auth = self.keystone.plugin("nova", "service")
        with openstack.connection.Connection(
                session=session.Session(auth=auth),
                region_name=keystone_server.REGION) as connection:
            placement = connection.placement
            made = placement.create_resource_provider(name=base.new_uuid())
            placement.create_resource_provider_inventory(made, "VCPU", total=8)
            self.assertEqual([made.name], [
                each.name for each in placement.resource_providers(name=made.name)])
            self.assertEqual([8], [
                each.total for each in placement.resource_provider_inventories(made)])
            placement.delete_resource_provider(made)

    def test_locations_have_the_path(self):
        token = self.keystone.token("nova", "service")
        made = self.send(self.url, "POST /resource_providers", token, {"name": base.new_uuid()},
                         version="1.0")
        location = made.headers["location"]
        self.assertTrue(location.startswith(f"{self.url}/resource_providers/"), location)
        shown = requests.get(location, headers={"X-Auth-Token": token}, timeout=60).json()
        links = {each["rel"]: each["href"] for each in shown["links"]}
        self.assertEqual(f"/placement/resource_providers/{shown['uuid']}", links["self"])
        self.assertEqual(200, requests.get(
            self.url.replace("/placement", links["inventories"]),
            headers={"X-Auth-Token": token}, timeout=60).status_code)
        for root in ("GET /", "GET "):
            self.assertEqual(200, self.send(self.url, root).status_code)
