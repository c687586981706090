# SPDX-License-Identifier: Apache-2.0
"""What all private PostgreSQL servers have in common."""

import os
import pathlib
import shutil
import signal
import subprocess
import urllib.parse

from pifpaf.drivers import postgresql

from placement_rpc.testing.server_process import ServerProcess


class PostgreSQLProcess(ServerProcess, postgresql.PostgreSQLDriver):
    """A PostgreSQL server; ``port`` is where it listens.

    Its data is in :attr:`_data`, and :attr:`_user` begins the command lines of programs that
    refuse to run as root.
    """

    _ready = "database system is ready to accept"
    _crash = signal.SIGQUIT
    _end = signal.SIGINT

    def _setUp(self):
        super()._setUp()
        self._user = ()
        if os.geteuid() == 0:
            self._user = ("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups")
            shutil.chown(self.tempdir, "postgres")
        self._data = pathlib.Path(self.tempdir, "data")

    def kill(self):
        """Kill all processes of the server at once, as a power cut does."""
        super().kill()
        self._remove_shared_memory()

    def _remove_shared_memory(self):
        """Remove the shared memory of a server that was killed, which nothing else does."""
        lines = self._lock_file()
        # The seventh line has the key and the id of the segment.
        if len(lines) > 6 and len(words := lines[6].split()) == 2:
            subprocess.run(["ipcrm", "--shmem-id", words[1]], check=False, capture_output=True)

    def _lock_file(self):
        """Return the lines of the file that a server has while it runs; none without the file."""
        try:
            return (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def execute(self, statement):
        """Run a statement with ``psql``, and return what it prints."""
        return self._run("psql", "-h", self.tempdir, "-p", str(self.port), "-U", "postgres",
                         "--tuples-only", "--no-align", "--quiet", "--no-psqlrc",
                         "-c", statement, "postgres").strip()


def url_of(database, servers):
    """Return the URL of a database that reaches whichever server is the primary.

    :param servers: list of :class:`PostgreSQLProcess`
    """
    query = urllib.parse.urlencode([
        *(("host", f"127.0.0.1:{server.port}") for server in servers),
        ("target_session_attrs", "read-write"), ("connect_timeout", "3")])
    return f"postgresql+psycopg://postgres@/{database}?{query}"
