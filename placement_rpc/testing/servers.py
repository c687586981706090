# SPDX-License-Identifier: Apache-2.0
"""Private RabbitMQ, PostgreSQL and MariaDB servers, as fixtures.

Each fixture owns its processes, ports and data, so any number of them, in any number of test
processes, run side by side and alongside the machine's own services. Nothing outlives the fixture,
even if the test process is killed: see :mod:`placement_rpc.testing.server_process`. The
environment of the calling process is not changed, and only its ``PATH`` is passed on to the
servers. Modules beside this one have clusters of each.
"""

import base64
import hashlib
import json
import os
import secrets
import shutil
import urllib.parse
import uuid

from pifpaf.drivers import mysql, rabbitmq

from placement_rpc.testing import server_process
from placement_rpc.testing.postgresql_process import PostgreSQLProcess
from placement_rpc.testing.server_process import ServerProcess, reserve_port

_PROGRAMS = {
    "mariadb-server": ("mariadb", "mariadb-install-db", "mariadbd"),
    "postgresql": ("createdb", "initdb", "postgres"),
    "rabbitmq-server": ("epmd", "rabbitmq-server", "rabbitmqctl"),
}

def missing(*packages):
    """Return the Debian packages that the fixtures need and the machine lacks, as a list.

    :param packages: str each, the packages to look for; without any, all that are needed
    """
    path = server_process.path()
    return [
        package
        for package in packages or _PROGRAMS
        if not all(shutil.which(program, path=path) for program in _PROGRAMS[package])
    ]


_TLS_CONFIGURATION = """
listeners.ssl.default = 127.0.0.1:{}
ssl_options.cacertfile = {}
ssl_options.certfile = {}
ssl_options.keyfile = {}
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = false
ssl_cert_login_from = common_name
auth_mechanisms.1 = PLAIN
auth_mechanisms.2 = AMQPLAIN
auth_mechanisms.3 = EXTERNAL
"""


def _definitions(user, password):
    """Return the definitions with which a node starts: an administrator and a virtual host."""
    salt = secrets.token_bytes(4)
    digest = base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()
    return {
        "vhosts": [{"name": "/"}],
        "users": [{"name": user, "password_hash": digest, "tags": ["administrator"],
                   "hashing_algorithm": "rabbit_password_hashing_sha256"}],
        "permissions": [{"user": user, "vhost": "/",
                         **dict.fromkeys(("configure", "write", "read"), ".*")}]}


class RabbitMQ(ServerProcess, rabbitmq.RabbitMQDriver):
    """A RabbitMQ node of its own, with its own epmd, on 127.0.0.1.

    ``plugins`` are enabled from the start. The management plugin listens on ``management_port``;
    other plugins with listeners use their default ports. The password is random, and no file
    contains it.

    :param tls: paths of the authority that signs certificates of clients, and of the node's
        certificate and key; the node then listens on ``tls_port`` too, and asks clients for a
        certificate, but does not require one
    """

    _command = ("rabbitmq-server",)
    _ready = "Server startup complete"

    def __init__(self, plugins=(), tls=None):
        super().__init__(password=secrets.token_urlsafe(24))
        self.plugins = plugins
        self._tls = tls

    def _setUp(self):
        super()._setUp()
        self.port, self.tls_port, self.management_port, distribution_port = (
            reserve_port(self) for _ in range(4)
        )
        self.url = f"rabbit://{self.username}:{self.password}@127.0.0.1:{self.port}/"
        self.env = {
            "ERL_EPMD_PORT": str(self._epmd_port()),
            # An epmd that the node starts as a daemon would outlive the fixture.
            "ERL_FLAGS": "-start_epmd false",
            # The directory of the Erlang cookie.
            "HOME": self.tempdir,
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{self.tempdir}/none",
            "RABBITMQ_CONFIG_FILE": f"{self.tempdir}/rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": f"{self.tempdir}/none",
            "RABBITMQ_CTL_ERL_ARGS": "-dist_listen false",
            "RABBITMQ_DIST_PORT": str(distribution_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.tempdir}/enabled_plugins",
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_LOG_BASE": self.tempdir,
            "RABBITMQ_MNESIA_BASE": self.tempdir,
            "RABBITMQ_NODENAME": self._node_name(),
            # Schedulers of several nodes must not be bound to the same processors.
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
            # With RabbitMQ's default "none", loading its modules, and so the start, takes twice
            # as long.
            "RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD": "short",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            # Makes the script become the node instead of waiting for it.
            "RUNNING_UNDER_SYSTEMD": "true",
        }
        with open(self.env["RABBITMQ_CONFIG_FILE"], "w") as config:
            config.write("\n".join([*self._configuration(), ""]))
        with open(f"{self.tempdir}/definitions.json", "w") as definitions:
            json.dump(_definitions(self.username, self.password), definitions)
        with open(self.env["RABBITMQ_ENABLED_PLUGINS_FILE"], "w") as enabled:
            print(f"[{','.join(self.plugins)}].", file=enabled)
        self._prepare()
        self.start()

    def _epmd_port(self):
        """Return the port of the Erlang daemon that knows the names of nodes."""
        return reserve_port(self)

    def _node_name(self):
        return f"rabbit-{self.port}@localhost"

    def _configuration(self):
        """Return the lines of the configuration file."""
        lines = [f"listeners.tcp.default = 127.0.0.1:{self.port}",
                 f"load_definitions = {self.tempdir}/definitions.json",
                 f"management.tcp.port = {self.management_port}",
                 "management.tcp.ip = 127.0.0.1"]
        if self._tls is not None:
            lines.append(_TLS_CONFIGURATION.format(self.tls_port, *self._tls))
        return lines

    def _prepare(self):
        """Start what the node needs."""
        # With debugging, epmd logs when it is ready.
        self._serve(("epmd", "-d", "-d", "-address", "127.0.0.1"), "entering the main select")

    def stop(self):
        """Kill the node, keeping its data; do nothing if it is stopped."""
        if self.process and self.process.poll() is None:
            # RabbitMQ delays writing the names of new quorum queues to disk (rabbitmq/ra pull
            # request 443). A queue that is killed before that never works again, and its
            # confirmed messages are lost.
            self.rabbitmqctl("eval", "[dets:sync(Table) || Table <- dets:all()].")
        super().stop()

    def rabbitmqctl(self, *args):
        """Run rabbitmqctl on the node and return what it prints."""
        return self._run("rabbitmqctl", *args)


class PostgreSQL(PostgreSQLProcess):
    """A PostgreSQL server of its own, on a Unix socket.

    Without ``durable`` it is fast, and stop() may lose the latest commits.
    """

    def __init__(self, durable=False):
        super().__init__(sync=durable)

    def _setUp(self):
        super()._setUp()
        data = str(self._data)
        self._run(*self._user, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        self._command = (*self._user, "postgres", "-D", data, "-p", str(self.port))
        self._command += ("-k", self.tempdir, "-h", "", "-N", "200")
        # In the data directory, since a crash would leave shared memory behind in /dev/shm.
        self._command += ("--dynamic_shared_memory_type=mmap",)
        if not self.sync:
            self._command += ("--fsync=off", "--synchronous_commit=off", "--full_page_writes=off")
        self.start()

    def create_database(self):
        """Create an empty database and return its URL."""
        name = f"test_{uuid.uuid4().hex}"
        self._run("createdb", "-h", self.tempdir, "-p", str(self.port), "-U", "postgres", name)
        query = urllib.parse.urlencode({"host": self.tempdir, "port": self.port})
        return f"postgresql+psycopg://postgres@/{name}?{query}"


class MariaDB(ServerProcess, mysql.MySQLDriver):
    """A MariaDB server of its own, on a Unix socket.

    Without ``durable`` it is fast, and stop() may lose the latest commits.
    """

    _ready = "ready for connections"

    def __init__(self, durable=False):
        super().__init__()
        self.durable = durable

    def _setUp(self):
        super()._setUp()
        self.socket = f"{self.tempdir}/socket"
        data = f"--datadir={self.tempdir}/data"
        options = ["--no-defaults", data, f"--tmpdir={self.tempdir}", "--innodb-log-file-size=32M"]
        if os.geteuid() == 0:
            options.append("--user=root")
        if not self.durable:
            options += ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync",
                        # A schema of 17 tables takes half as long to create.
                        "--innodb-file-per-table=0"]
        install = ("mariadb-install-db", *options, "--skip-test-db")
        self._run(*install, "--auth-root-authentication-method=normal")
        self._command = ("mariadbd", *options, f"--socket={self.socket}", "--skip-networking")
        self._command += ("--character-set-server=utf8mb4", "--max-connections=300")
        self.start()

    def create_database(self):
        """Create an empty database and return its URL."""
        name = f"test_{uuid.uuid4().hex}"
        client = ("mariadb", "--no-defaults", f"--socket={self.socket}", "--user=root")
        self._run(*client, f"--execute=CREATE DATABASE {name}")
        # Otherwise the driver loads all certificates of the machine for each connection.
        query = urllib.parse.urlencode({
            "unix_socket": self.socket, "charset": "utf8mb4", "ssl_disabled": "true"})
        return f"mysql+pymysql://root@localhost/{name}?{query}"
