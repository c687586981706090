# SPDX-License-Identifier: Apache-2.0
"""A private cluster of MariaDB nodes that replicate with Galera."""

import glob
import os
import pathlib
import re
import shutil
import urllib.parse
import uuid
from typing import NamedTuple

import fixtures
from pifpaf.drivers import mysql

from placement_rpc.testing.server_process import ServerProcess, reserve_port

_PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib*/galera*/libgalera_smm.so",
              "/usr/lib/*/galera*/libgalera_smm.so")


class _Ports(NamedTuple):
    """Those of a node: for clients, and for replication, missed changes, and whole copies."""

    clients: int
    replication: int
    changes: int
    copies: int


class GaleraCluster(fixtures.Fixture):
    """Nodes on 127.0.0.1, each with a copy of all databases, that accept changes.

    :param size: int, the number of nodes
    :ivar nodes: list of :class:`Node`
    """

    def __init__(self, size=3):
        super().__init__()
        self._size = size

    def _setUp(self):
        ports = [_Ports(*(reserve_port(self) for _ in _Ports._fields))
                 for _ in range(self._size)]
        addresses = ",".join(f"127.0.0.1:{each.replication}" for each in ports)
        # One after the other: each copies the data of those before it.
        self.nodes = [self.useFixture(Node(number, each, addresses))
                      for number, each in enumerate(ports)]

    def create_database(self):
        """Create an empty database and return its name, for :meth:`Node.url_of`."""
        name = f"test_{uuid.uuid4().hex}"
        self.nodes[0].execute(f"CREATE DATABASE {name}")
        return name

    def recover(self):
        """Start all nodes again after all of them were stopped."""
        newest = max(self.nodes, key=lambda node: node.last_commit())
        newest.start(is_first=True)
        for node in self.nodes:
            if node is not newest:
                node.start()


class Node(ServerProcess, mysql.MySQLDriver):
    """A node of a cluster.

    :param number: int, its own; the first node forms the cluster
    :param ports: its ports
    :param addresses: str, where all nodes replicate, separated by commas
    """

    _ready = "ready for connections"

    def __init__(self, number, ports, addresses):
        super().__init__()
        self.name = f"node{number}"
        self._is_first = number == 0
        self._ports = ports
        self._addresses = addresses
        #: Where it accepts connections.
        self.port = ports.clients

    def _setUp(self):
        super()._setUp()
        self._data = pathlib.Path(self.tempdir, "data")
        self._data.mkdir()
        user = []
        if os.geteuid() == 0:
            # The program that copies the data refuses what root owns.
            user = ["--user=mysql"]
            for path in (self.tempdir, self._data):
                shutil.chown(path, "mysql", "mysql")
        options = ["--no-defaults", f"--datadir={self._data}", f"--tmpdir={self.tempdir}", *user]
        if self._is_first:
            self._run("mariadb-install-db", *options, "--skip-test-db",
                      "--auth-root-authentication-method=normal")
        self._command = ("mariadbd", *options, *self._options())
        self.start(is_first=self._is_first)

    def _options(self):
        ports = self._ports
        own = f"127.0.0.1:{ports.replication}"
        return [
            f"--port={ports.clients}", "--bind-address=127.0.0.1",
            f"--socket={self.tempdir}/socket", f"--pid-file={self.tempdir}/pid",
            "--character-set-server=utf8mb4", "--max-connections=300",
            "--innodb-log-file-size=32M", "--innodb-buffer-pool-size=64M",
            # What commits is on the other nodes; a node that crashes copies from them.
            "--innodb-flush-log-at-trx-commit=0",
            "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON", f"--wsrep-provider={_provider()}", "--wsrep-cluster-name=tests",
            f"--wsrep-cluster-address=gcomm://{self._addresses}",
            f"--wsrep-node-name={self.name}", f"--wsrep-node-address={own}",
            "--wsrep-sst-method=rsync", f"--wsrep-sst-receive-address=127.0.0.1:{ports.copies}",
            "--wsrep-provider-options=" + ";".join((
                f"gmcast.listen_addr=tcp://{own}", f"ist.recv_addr=127.0.0.1:{ports.changes}",
                "gcache.size=32M"))]

    def start(self, is_first=False):
        """Start the node and wait until it has the data of the others.

        :param is_first: bool, whether it forms a new cluster, and has the newest data
        """
        command = self._command
        if is_first:
            state = self._data / "grastate.dat"
            if state.exists():
                state.write_text(re.sub(
                    "safe_to_bootstrap: 0", "safe_to_bootstrap: 1", state.read_text()))
            command = (*command, "--wsrep-new-cluster")
        self.process = self._serve(command, self._ready)

    def last_commit(self):
        """Return the number of the last change that the stopped node has: int."""
        # It says so in its log.
        log = self._run("sh", "-c", 'exec "$@" 2>&1', "sh", *self._command, "--wsrep-recover")
        return int(re.findall(r"Recovered position: [0-9a-f-]+:(-?\d+)", log)[-1])

    def url_of(self, database):
        """Return the URL of a database: str."""
        query = urllib.parse.urlencode({"charset": "utf8mb4"})
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/{database}?{query}"

    def execute(self, statement):
        """Run a statement with the ``mariadb`` program, and return what it prints."""
        return self._run("mariadb", "--no-defaults", "--protocol=tcp", "--host=127.0.0.1",
                         f"--port={self.port}", "--user=root", "--batch", "--skip-column-names",
                         f"--execute={statement}")

    def status(self, name):
        """Return a status variable, such as ``wsrep_cluster_size``: str."""
        return self.execute(f"SHOW GLOBAL STATUS LIKE '{name}'").split()[-1]


def _provider():
    """Return the path of Galera's library."""
    for pattern in _PROVIDERS:
        for path in glob.glob(pattern):
            return path
    raise RuntimeError("Galera is not installed; Debian's package is galera-4")
