# SPDX-License-Identifier: Apache-2.0
"""The upgrade of the schema to the version that this release needs.

There are two branches. *expand* only adds, and runs while services of the previous release are
running; *contract* removes what those need, and runs when they are stopped.
"""

import logging

import alembic.command
import alembic.config
import sqlalchemy as sa
from alembic import autogenerate, migration, script
from oslo_db import exception as db_exc

from placement_rpc import exception
from placement_rpc.db import models, schema_version, sessions, standards
from placement_rpc.db.schema_version import CONTRACT, EXPAND

LOG = logging.getLogger(__name__)
# Key of PostgreSQL's advisory lock for changes of the schema; any number that no other program
# takes in this database.
_LOCK = 0x706C6163656D656E
# Seconds to wait for another process that changes the schema, on MariaDB.
_PATIENCE = 3600


def _ignore(_revision):
    """Say nothing about a revision that was applied."""


def _config(connection=None, report=_ignore):
    config = alembic.config.Config()
    config.set_main_option("script_location", "placement_rpc.db:migrations")
    config.attributes.update(connection=connection, report=report)
    return config


def expanded_by(revisions):
    """Return the last revision of the expand branch that others need, a str or None.

    :param revisions: list of str, all of them of this release
    """
    scripts = script.ScriptDirectory.from_config(_config())
    return max((each.revision for each in scripts.iterate_revisions(revisions, "base")
                if each.revision.isdigit()), default=None)


def missing(database, branch=EXPAND):
    """Return how many revisions of a branch were not applied yet, an int."""
    return len(_missing(schema_version.heads(database), branch))


def _missing(heads, branch):
    """Return the revisions of a branch that were not applied yet, in order.

    :param heads: as of :func:`schema_version.heads`
    """
    scripts = script.ScriptDirectory.from_config(_config())
    # A later release may have applied others.
    known = {each.revision for each in scripts.walk_revisions()}.intersection(heads)
    done = {each.revision for each in scripts.iterate_revisions(tuple(known), "base")}
    wanted = [each.revision for each in scripts.iterate_revisions(f"{branch}@head", "base")]
    return [each for each in reversed(wanted) if each not in done]


def sync(database, standard_classes, standard_traits, report=_ignore):
    """Upgrade the schema, the standard resource classes and the traits to this release: expand.

    The schema of a later release stays as it is; see :func:`schema_version.check`.

    :param standard_classes: dict of class name to id
    :param standard_traits: collection of names
    :param report: called with the name of each revision that was applied
    :returns: str, the database's revision after that
    """
    _upgrade(database, EXPAND, report)
    standards.insert_missing(database, standard_classes, standard_traits)
    return schema_version.current(database)


def contract(database, report=_ignore):
    """Drop columns that this release does not need; the caller checks that no older one runs.

    :param report: as of :func:`sync`
    :raises SchemaLater: if they are to be dropped from the schema of a later release
    :returns: str, the contract branch's revision
    """
    _upgrade(database, CONTRACT, report)
    return schema_version.newest(CONTRACT)


def _is_done(database, branch):
    if branch == CONTRACT:
        return schema_version.is_contracted(database)
    return (schema_version.current(database) or "") >= schema_version.newest()


def _upgrade(database, branch, report):
    """Apply the revisions of a branch that are missing, each in a transaction of its own.

    What one of them locks is free again before the next one begins.
    """
    while not _is_done(database, branch):
        heads = schema_version.heads(database)
        if schema_version.is_later(heads):
            raise exception.SchemaLater(current=", ".join(sorted(heads)))
        with database.writer() as connection:
            sessions.lift_limits(connection)
            _wait_for_others(connection)
            # Another process may have applied it meanwhile, and others of a later release.
            if set(schema_version.heads_in(connection)) == set(heads):
                alembic.command.upgrade(
                    _config(connection, report), _missing(heads, branch)[0])


def _wait_for_others(connection):
    """Wait for other processes that change the schema, and keep them waiting.

    SQLite has one writer anyway. On a Galera cluster only processes that use the same node wait
    for each other.

    :raises StoreBusy: if another one takes too long
    """
    if connection.dialect.name == "postgresql":
        # Until the end of the transaction.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    elif connection.dialect.name in ("mysql", "mariadb"):
        # Until the end of the session, which does not return to the pool; a lock is the whole
        # server's.
        name = sa.func.sha1(sa.func.concat("placement_rpc schema ", sa.func.database()))
        try:
            got = connection.execute(sa.select(sa.func.get_lock(name, _PATIENCE))).scalar()
        except db_exc.DBConnectionError:
            raise
        except db_exc.DBError as error:
            # Some releases of MariaDB, and Percona's cluster, refuse it on nodes of a cluster.
            LOG.warning("Others that change the schema at the same time are not waited for: %s",
                        error)
        else:
            if got != 1:
                raise exception.StoreBusy(method="a change of the schema", attempts=1)


def differences(database):
    """Return a list of alembic's operations that would make the schema equal to the models.

    Parts of the models that ``info`` limits to another kind of database are left out.
    """
    def concerns(item, *_arguments):
        return item.info.get("dialect", database.dialect) == database.dialect

    with database.reader() as connection:
        context = migration.MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": concerns})
        return autogenerate.compare_metadata(context, models.metadata)
