# SPDX-License-Identifier: Apache-2.0
"""The facade as a cloud runs it: a WSGI server with several processes, real databases and bus."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import fixtures
import requests
import testscenarios

from placement_rpc.db.queries import events, services
from placement_rpc.testing import fixtures as placement_fixtures
from tests import base, servers


class WSGIServer(fixtures.Fixture):
    """gunicorn on a free port; ``url`` is where, ``process`` its master."""

    def __init__(self, options):
        super().__init__()
        self._options = options

    def _setUp(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "placement-rpc.conf")
        path.write_text("\n".join(f"[{group}]\n" + "\n".join(
            f"{name} = {value}" for name, value in options.items())
            for group, options in self._options.items()))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "gunicorn", "--workers", "2", "--threads", "4",
             "--preload", "--bind", f"127.0.0.1:{port}", "--log-level", "warning",
             "placement_rpc.http.wsgi:application"],
            env={**os.environ, "PLACEMENT_RPC_CONF": str(path)}, stderr=subprocess.PIPE)
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.kill)
        base.wait_until(self.answers)

    def answers(self):
        try:
            return requests.get(self.url, timeout=30) is not None
        except requests.ConnectionError:
            if self.process.poll() is not None:
                raise
            return False


class FacadeTest(testscenarios.WithScenarios, base.TestCase):
    time_limit = 240
    scenarios = [(f"{transport} on {kind}", {"transport": transport, "kind": kind})
                 for transport, kind in (("local", "postgresql"), ("local", "mariadb"),
                                         ("rpc", "postgresql"))]

    def setUp(self):
        super().setUp()
        # All facades call the same topic.
        broker = self.useFixture(servers.VirtualHost())
        self.running = self.useFixture(placement_fixtures.RunningService(
            transport_url=broker.url, database_url=servers.new_database(self.kind),
            topic="placement" if self.transport == "rpc" else None))
        options = {"api": {"auth_strategy": "noauth2", "transport": self.transport},
                   "conductor": {"report_interval": 1}}
        if self.transport == "rpc":
            # No word of the database.
            options["DEFAULT"] = {"transport_url": broker.url}
        else:
            options["database"] = {"connection": self.running.conf.database.connection}
        self.server = self.useFixture(WSGIServer(options))
        self.session = requests.Session()
        self.addCleanup(self.session.close)
        self.session.headers.update({
            "x-auth-token": "admin", "openstack-api-version": "placement 1.9"})

    def send(self, method, path, **how):
        return self.session.request(method, self.server.url + path, timeout=60, **how)

    def test_a_working_day(self):
        uuid = base.new_uuid()
        self.assertEqual(201, self.send("POST", "/resource_providers", json={
            "name": uuid, "uuid": uuid}).status_code)
        self.assertEqual(200, self.send("PUT", f"/resource_providers/{uuid}/inventories", json={
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": 4}}}).status_code)
        consumers = [base.new_uuid() for _ in range(6)]
        body = {"project_id": "ada", "user_id": "anna", "allocations": [
            {"resource_provider": {"uuid": uuid}, "resources": {"VCPU": 1}}]}
        self.assertEqual([204] * 4 + [409] * 2, [
            self.send("PUT", f"/allocations/{each}", json=body).status_code
            for each in consumers])
        self.assertEqual({"VCPU": 4}, self.send(
            "GET", f"/resource_providers/{uuid}/usages").json()["usages"])
        # The relay of a conductor publishes what this process wrote.
        found, position, deadline = [], 0, time.monotonic() + 60
        while len([each for each in found if each == "allocation.create"]) < 4:
            self.assertLess(time.monotonic(), deadline, found)
            answer = self.send("GET", f"/events?after={position}&wait=5")
            self.assertEqual(200, answer.status_code, answer.text)
            found += [json.loads(line)["event_type"]
                      for line in answer.text.splitlines()]
            position = answer.headers["placement-position"]
        self.assertEqual(403, self.send("GET", "/resource_providers", headers={
            "x-auth-token": "ada"}).status_code)

    def test_candidates_are_passed_on(self):
        """What the service renders is streamed, whoever renders it."""
        uuids, api = [], self.running.api
        for number in range(40):
            uuids.append(api.create_provider(None, f"compute {number}").uuid)
            api.set_inventory(None, uuids[-1], [base.inventory("VCPU", 4)])
            child = api.create_provider(
                None, f"device {number}", parent_provider_uuid=uuids[-1]).uuid
            api.set_inventory(None, child, [base.inventory("VGPU", 1)])
        answer = self.send(
            "GET", "/allocation_candidates?resources=VCPU:1&resources1=VGPU:1",
            headers={"openstack-api-version": "placement 1.36"})
        self.assertEqual(200, answer.status_code, answer.text)
        self.assertEqual("chunked", answer.headers["transfer-encoding"])
        self.assertEqual("application/json", answer.headers["content-type"])
        self.assertIn("placement-position", answer.headers)
        found = answer.json()
        self.assertEqual(40, len(found["allocation_requests"]))
        self.assertEqual(80, len(found["provider_summaries"]))
        self.assertCountEqual(uuids, [each["mappings"][""][0]
                                      for each in found["allocation_requests"]])
        claimed = self.send(
            "PUT", f"/allocations/{base.new_uuid()}", json={
                **found["allocation_requests"][0], "project_id": "ada", "user_id": "anna",
                "consumer_generation": None},
            headers={"openstack-api-version": "placement 1.36"})
        self.assertEqual(204, claimed.status_code, claimed.text)
        refused = self.send(
            "GET", "/allocation_candidates?resources=CUSTOM_NONE:1",
            headers={"openstack-api-version": "placement 1.36"})
        self.assertEqual(400, refused.status_code)

    def test_its_heartbeat(self):
        self.send("GET", "/resource_providers")
        with self.running.database.reader() as tx:
            rows = [row for row in services.everyone(tx) if row.binary == "placement-rpc-api"]
        if self.transport == "rpc":
            self.assertEqual([], rows)
            return
        self.assertGreaterEqual(len(rows), 1)
        self.server.process.send_signal(signal.SIGTERM)
        self.server.process.wait(30)
        with self.running.database.reader() as tx:
            self.assertEqual([], [
                row for row in services.everyone(tx) if row.binary == "placement-rpc-api"])
            self.assertIsNotNone(events.state(tx))
