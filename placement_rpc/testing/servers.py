# SPDX-License-Identifier: Apache-2.0
"""Private RabbitMQ, PostgreSQL and MariaDB servers, as fixtures.

Each fixture owns its processes, ports and data, so any number of them, in any number of test
processes, run side by side and alongside the machine's own services. Nothing outlives the fixture,
even if the test process is killed: see ``_SUPERVISED``. The environment of the calling process is
not changed, and only its ``PATH`` is passed on to the servers.
"""

import base64
import glob
import hashlib
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import uuid

from pifpaf import drivers
from pifpaf.drivers import mysql, postgresql, rabbitmq

START_TIMEOUT = 120

# Below the range from which Linux picks ports for outgoing connections, which could otherwise take
# the port of a stopped server.
_PORTS = range(15000, 32000)

_PROGRAMS = {
    "mariadb-server": ("mariadb", "mariadb-install-db", "mariadbd"),
    "postgresql": ("createdb", "initdb", "postgres"),
    "rabbitmq-server": ("epmd", "rabbitmq-server", "rabbitmqctl"),
}

# The shell starts a watchdog in the background and becomes the server. The watchdog waits for the
# end of a pipe whose other end only the test process has, that is, for the death of that process;
# then it ends the server and removes its directory. PR_SET_PDEATHSIG would be lost when setpriv
# changes the user, and would trigger when the thread that started the server ends, rather than the
# process. A process that was forked without exec (multiprocessing's "fork") shares the pipe, so it
# keeps the server alive too.
_SUPERVISED = """
signal=$1 directory=$2; shift 2
exec 3<&0 </dev/null
{
    read -r _ <&3
    # Repeated until the server is gone: PostgreSQL takes a moment to end its children.
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do kill -s "$signal" $$ || break; sleep 0.5; done
    rm -rf "$directory"
    kill -s KILL -- -$$
} >/dev/null 2>&1 &
exec "$@" 3<&-
"""


def missing(*packages):
    """Return the Debian packages that the fixtures need and the machine lacks, as a list.

    :param packages: str each, the packages to look for; without any, all that are needed
    """
    path = _path()
    return [
        package
        for package in packages or _PROGRAMS
        if not all(shutil.which(program, path=path) for program in _PROGRAMS[package])
    ]


def _path():
    newest_first = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    # RabbitMQ's directory before /usr/sbin, where Debian's wrappers insist on the user rabbitmq.
    path = ["/usr/lib/rabbitmq/bin", *newest_first, os.environ.get("PATH", os.defpath)]
    return os.pathsep.join([*path, "/usr/sbin"])


class Server(drivers.Driver):
    """Base of the fixtures: a server process that can crash and be started again."""

    # The server's command line, a regular expression for its log line when it accepts
    # connections, and the signal that ends it at once.
    _command = ()
    _ready = ""
    _crash = signal.SIGKILL
    #: The running server, a subprocess.Popen; None before the first start.
    process = None

    def _setUp(self):
        # Not super()._setUp(), which would start pifpaf's own server; only its directory is used.
        drivers.Driver._setUp(self)

    def putenv(self, key, value, raw=False):
        """Do nothing; pifpaf would change the environment of the calling process."""

    def start(self):
        """Start the server on its existing data and wait until it accepts connections."""
        self.process = self._serve(self._command, self._ready)

    def stop(self):
        """Stop the server as a crash would, keeping its data; do nothing if it is stopped."""
        if self.process:
            self._kill(self.process)

    def restart(self):
        """Stop the server as a crash would, and start it again."""
        self.stop()
        self.start()

    def _surroundings(self):
        return {"cwd": self.tempdir, "env": {"PATH": _path(), "LANG": "C.UTF-8", **self.env}}

    def _run(self, *command):
        done = subprocess.run(
            command, check=False, input="", capture_output=True, text=True, **self._surroundings()
        )
        if done.returncode:
            raise RuntimeError(f"{command} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def _serve(self, command, ready):
        with open(f"{self.tempdir}/log", "a+b") as log:
            start = log.tell()
            process = subprocess.Popen(
                ["sh", "-c", _SUPERVISED, "sh", self._crash.name[3:], self.tempdir, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **self._surroundings(),
            )
            self.addCleanup(self._kill, process)
            deadline = time.monotonic() + START_TIMEOUT
            while True:
                log.seek(start)
                text = log.read().decode(errors="replace")
                if re.search(ready, text):
                    return process
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command} did not start:\n{text}")
                time.sleep(0.01)

    def _kill(self, process):
        if process.stdin.closed:
            return
        process.send_signal(self._crash)
        process.wait()
        # The watchdog is still in the process group, so its id has not been reused.
        os.killpg(process.pid, signal.SIGKILL)
        process.stdin.close()

    def _reserve_port(self):
        # Not the global generator, which a test may have seeded alike in every process.
        port = random.SystemRandom().choice(_PORTS)
        # A name in the abstract namespace is a lock between processes that the kernel releases.
        lock = socket.socket(socket.AF_UNIX)
        self.addCleanup(lock.close)
        try:
            lock.bind(f"\0reserved-port-{port}")
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            return self._reserve_port()
        return port


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


class RabbitMQ(Server, rabbitmq.RabbitMQDriver):
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
        self.port, self.tls_port, self.management_port, epmd_port, distribution_port = (
            self._reserve_port() for _ in range(5)
        )
        self.url = f"rabbit://{self.username}:{self.password}@127.0.0.1:{self.port}/"
        self.env = {
            "ERL_EPMD_PORT": str(epmd_port),
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
            "RABBITMQ_NODENAME": f"rabbit-{self.port}@localhost",
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
            print(f"listeners.tcp.default = 127.0.0.1:{self.port}", file=config)
            print(f"load_definitions = {self.tempdir}/definitions.json", file=config)
            print(f"management.tcp.port = {self.management_port}", file=config)
            print("management.tcp.ip = 127.0.0.1", file=config)
            if self._tls is not None:
                print(_TLS_CONFIGURATION.format(self.tls_port, *self._tls), file=config)
        with open(f"{self.tempdir}/definitions.json", "w") as definitions:
            json.dump(_definitions(self.username, self.password), definitions)
        with open(self.env["RABBITMQ_ENABLED_PLUGINS_FILE"], "w") as enabled:
            print(f"[{','.join(self.plugins)}].", file=enabled)
        # With debugging, epmd logs when it is ready.
        epmd = ("epmd", "-d", "-d", "-address", "127.0.0.1")
        self._serve(epmd, "entering the main select")
        self.start()

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


class PostgreSQL(Server, postgresql.PostgreSQLDriver):
    """A PostgreSQL server of its own, on a Unix socket.

    Without ``durable`` it is fast, and stop() may lose the latest commits.
    """

    _ready = "database system is ready to accept connections"
    _crash = signal.SIGQUIT

    def __init__(self, durable=False):
        super().__init__(sync=durable)

    def _setUp(self):
        super()._setUp()
        user = ()
        if os.geteuid() == 0:
            # The server refuses to run as root.
            user = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups")
            shutil.chown(self.tempdir, "postgres")
        data = f"{self.tempdir}/data"
        self._run(*user, "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync")
        self._command = (*user, "postgres", "-D", data, "-p", str(self.port))
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


class MariaDB(Server, mysql.MySQLDriver):
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
        query = urllib.parse.urlencode({"unix_socket": self.socket, "charset": "utf8mb4"})
        return f"mysql+pymysql://root@localhost/{name}?{query}"
