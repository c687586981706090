# SPDX-License-Identifier: Apache-2.0
"""A real database of OpenStack Placement, used through Placement's own API in this process.

:class:`PlacementCloud` is an empty one on any of the three engines, its tables made by Placement's
own migrations, of any of its revisions. :mod:`tests.placement_contents` fills it.
"""

import contextlib
import functools
import json
import shutil
import tempfile
import typing

import alembic.command
import alembic.migration
import fixtures
import sqlalchemy as sa
import webob
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from placement import conf, db_api, deploy
from placement.db.sqlalchemy import migration, models
from placement.objects import resource_class, trait

from tests import servers

#: The revisions of Placement's migrations, the oldest first
REVISIONS = ("b4ed3a175331", "611cd6dffd7b", "b5c396305c25", "422ece571366", "a082b8bb98d0")
HEAD = REVISIONS[-1]
LATEST_MINOR = 39


class Answer(typing.NamedTuple):
    """An answer: its status, and its JSON document (None without a body)."""

    status: int
    body: typing.Any


class Refused(Exception):
    """Placement has refused a request."""


@functools.cache
def _config():
    """Return the configuration of this process's Placement, which has global state."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config.set_override("auth_strategy", "noauth2", "api")
    # No request uses it: each is routed to the database of its cloud.
    config.set_override("connection", "sqlite://", "placement_database")
    config([], default_config_files=[])
    db_api.configure(config)
    return config


@functools.cache
def _application():
    """Return the WSGI application; called first while a database with tables is routed to."""
    return deploy.loadapp(_config())


def _synchronise():
    """Write the standard resource classes and traits, as Placement does when it starts."""
    trait._TRAITS_SYNCED = resource_class._RESOURCE_CLASSES_SYNCED = False
    deploy.update_database(_config())


class _Database:
    """Placement's own connection to a database."""

    def __init__(self, url):
        _config()
        # Placement reads the id of an allocation in a way that psycopg 3 does not support.
        url = url.replace("postgresql+psycopg:", "postgresql+psycopg2:")
        self._factory = enginefacade.transaction_context()
        self._factory.configure(connection=url, sqlite_synchronous=False)

    @contextlib.contextmanager
    def routed(self):
        """Let Placement's code use this database."""
        reset = db_api.placement_context_manager.patch_factory(self._factory)
        try:
            yield
        finally:
            reset()

    def close(self):
        """Close its connections."""
        self._factory.writer.get_engine().dispose()

    def upgrade(self, revision):
        """Run the migrations up to a revision, and write the standard classes and traits."""
        with self.routed():
            migration.upgrade(revision)
            _synchronise()


@functools.cache
def _directory():
    # Removed when the process ends.
    return tempfile.TemporaryDirectory(prefix="placement-")


@functools.cache
def _sqlite_template(revision):
    """Return the path of a SQLite file with the tables of a revision, to be copied."""
    path = f"{_directory().name}/{revision}.sqlite"
    database = _Database(f"sqlite:///{path}")
    database.upgrade(revision)
    database.close()
    return path


class PlacementCloud(fixtures.Fixture):
    """A database of OpenStack Placement; ``url`` is its SQLAlchemy URL, ``engine`` an engine.

    :param kind: one of :data:`tests.servers.DATABASES`
    :param revision: one of :data:`REVISIONS`; requests need the newest
    :param url: str, SQLAlchemy URL of an empty database of that kind; None for one of the servers
        that tests share
    """

    def __init__(self, kind="sqlite", revision=HEAD, url=None):
        super().__init__()
        self._kind, self._revision, self._url = kind, revision, url

    def _setUp(self):
        if self._kind == "sqlite":
            path = self.useFixture(fixtures.TempDir()).join("placement.sqlite")
            shutil.copyfile(_sqlite_template(self._revision), path)
            self.url = f"sqlite:///{path}"
        else:
            self.url = self._url or servers.new_empty_database(self._kind)
        self.engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        self._database = _Database(self.url)
        self.addCleanup(self._database.close)
        if self._kind != "sqlite":
            self._database.upgrade(self._revision)

    def revision(self):
        """Return the revision of the tables."""
        with self.engine.connect() as connection:
            return alembic.migration.MigrationContext.configure(connection).get_current_revision()

    def upgrade(self, revision=HEAD):
        """Run Placement's migrations up to a revision."""
        self._database.upgrade(revision)

    def ask(self, method, path, body=None, minor=LATEST_MINOR):
        """Send a request and return its :class:`Answer`, whatever it is.

        :param body: what is sent as JSON
        :param minor: int, of the microversion 1.x
        """
        request = webob.Request.blank(path, method=method, headers={
            "x-auth-token": "admin", "x-roles": "admin,service",
            "openstack-api-version": f"placement 1.{minor}"})
        if body is not None:
            request.content_type, request.body = "application/json", json.dumps(body).encode()
        with self._database.routed():
            answer = request.get_response(_application())
        return Answer(answer.status_int, json.loads(answer.body) if answer.body else None)

    def send(self, method, path, body=None, minor=LATEST_MINOR):
        """Send a request and return the document of its answer.

        :raises Refused: if its status is an error
        """
        answer = self.ask(method, path, body, minor)
        if answer.status >= 400:
            raise Refused(f"{method} {path}: {answer.status} {answer.body}")
        return answer.body

    @contextlib.contextmanager
    def without_foreign_keys(self):
        """Return a connection whose writes no foreign key refuses; committed at the end."""
        with self.engine.connect() as connection:
            off = {"mysql": "SET foreign_key_checks = 0",
                   "postgresql": "SET session_replication_role = replica"}.get(
                       connection.dialect.name)
            if off:
                connection.exec_driver_sql(off)
            yield connection
            connection.commit()

    def empty(self):
        """Delete all that was written since its tables were made."""
        standard = {
            "traits": sa.not_(models.Trait.name.startswith("CUSTOM_", autoescape=True)),
            "resource_classes": sa.not_(
                models.ResourceClass.name.startswith("CUSTOM_", autoescape=True))}
        tables = sa.inspect(self.engine).get_table_names()
        with self.without_foreign_keys() as connection:
            for table in models.BASE.metadata.tables.values():
                if table.name in tables:
                    connection.execute(sa.delete(table).where(
                        sa.not_(standard[table.name]) if table.name in standard else sa.true()))
