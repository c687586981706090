# SPDX-License-Identifier: Apache-2.0
"""HAProxy with one of the files of ``etc/``."""

import csv
import socket
import subprocess

import fixtures

from tests import base
from tests.integration import machine


class HAProxy(fixtures.Fixture):
    """HAProxy on 127.0.0.1; ``port`` is where.

    :param name: str, the file, relative to ``etc/``
    :param bind: str, the address in the file on which it listens
    :param servers: dict of the address of each server in the file to another address
    :param prefix: str, with which the names of the servers begin
    :param replacements: dict of further texts of the file to others
    """

    def __init__(self, name, bind, servers, prefix, replacements=None):
        super().__init__()
        self._name, self._bind, self._prefix = name, bind, prefix
        self._replacements = {**servers, **(replacements or {})}

    def _setUp(self):
        where = self.useFixture(machine.Machine())
        self._socket = where.path("/run/haproxy/placement-rpc.sock")
        self.port = machine.free_port()
        path = where.install(self._name, "/etc/haproxy/haproxy.cfg", {
            f"    bind {self._bind}": f"    bind 127.0.0.1:{self.port}",
            "log /dev/log local0": "log stdout format raw local0", "maxconn 4000": "maxconn 200",
            **self._replacements})
        self._log = where.path("/run/haproxy/log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [machine.program("haproxy"), "-db", "-f", str(path)], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        self.addCleanup(self.stop)

    def stop(self):
        """End it at once, with all connections."""
        self._process.kill()
        self._process.wait()

    def states(self):
        """Return the state of each server, a list of UP and DOWN; None before it has started."""
        if not self._socket.exists():
            return None
        with socket.socket(socket.AF_UNIX) as asked:
            asked.connect(str(self._socket))
            asked.sendall(b"show stat\n")
            lines = asked.makefile().read().splitlines()
        return [row["status"].split()[0] for row in csv.DictReader(lines)
                if row["svname"].startswith(self._prefix)]

    def wait_for(self, *states):
        """Wait until the servers have these states."""
        base.wait_until(lambda: self._process.poll() is not None or (
            self.states() == list(states)), seconds=30, message=self._said)
        if self._process.poll() is not None:
            raise RuntimeError(self._said())

    def _said(self):
        return f"{self.states()}\n{self._log.read_text()}"


class GaleraProxy(HAProxy):
    """HAProxy in front of the nodes of a cluster, of which one at a time gets all connections.

    :param nodes: list of :class:`placement_rpc.testing.galera.Node`
    """

    def __init__(self, nodes):
        super().__init__(
            "haproxy/galera.cfg", "127.0.0.1:3306",
            {f"192.0.2.2{number}:3306": f"127.0.0.1:{node.port}"
             for number, node in enumerate(nodes, 1)}, "node", {"user haproxy": "user root"})
        self._nodes = nodes

    def _setUp(self):
        super()._setUp()
        self.wait_for(*["UP"] * len(self._nodes))

    def url_of(self, database):
        """Return the URL of a database: str."""
        node = self._nodes[0]
        return node.url_of(database).replace(f":{node.port}/", f":{self.port}/")
