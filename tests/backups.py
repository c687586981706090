# SPDX-License-Identifier: Apache-2.0
"""Backups and restores of a database, by the commands of ``docs/source/backup.rst``."""

import pathlib
import shutil
import subprocess

import sqlalchemy as sa

from placement_rpc.testing import server_process


class PostgreSQLBackup:
    """``pg_dump`` and ``pg_restore``."""

    def __init__(self, url, directory):
        found = sa.make_url(url)
        self._server = ["--host", found.query.get("host", found.host), "--username",
                        found.username, "--port", str(found.query.get("port", found.port or 5432))]
        self._database, self._file = found.database, f"{directory}/backup"

    def take(self):
        _run("pg_dump", *self._server, "--format=custom", f"--file={self._file}", self._database)

    def restore(self):
        _run("dropdb", *self._server, "--force", self._database)
        _run("createdb", *self._server, self._database)
        _run("pg_restore", *self._server, f"--dbname={self._database}", self._file)


class MariaDBBackup:
    """``mariadb-dump`` and ``mariadb``."""

    def __init__(self, url, directory):
        found = sa.make_url(url)
        self._server = ["--no-defaults", f"--socket={found.query['unix_socket']}"] if (
            "unix_socket" in found.query) else [
                "--no-defaults", f"--host={found.host}", f"--port={found.port}"]
        self._server += [f"--user={found.username}", f"--password={found.password or ''}"]
        self._database, self._file = found.database, pathlib.Path(directory, "backup.sql")

    def take(self):
        with self._file.open("w") as file:
            _run("mariadb-dump", *self._server, "--single-transaction", self._database,
                 stdout=file)

    def restore(self):
        _run("mariadb", *self._server, "-e",
             f"DROP DATABASE {self._database}; CREATE DATABASE {self._database}")
        with self._file.open() as file:
            _run("mariadb", *self._server, self._database, stdin=file)


class SQLiteBackup:
    """``sqlite3``'s ``.backup``, and a copy back."""

    def __init__(self, url, directory):
        self._file, self._backup = sa.make_url(url).database, f"{directory}/backup.sqlite"

    def take(self):
        _run("sqlite3", self._file, f".backup {self._backup}")

    def restore(self):
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(self._file + suffix).unlink(missing_ok=True)
        shutil.copyfile(self._backup, self._file)


#: Kind of database to the class that backs up one, made with its URL and a directory.
BACKUPS = {"postgresql": PostgreSQLBackup, "mariadb": MariaDBBackup, "sqlite": SQLiteBackup}


def _run(*command, **options):
    subprocess.run(command, check=True, env={"PATH": server_process.path()}, **options)
