# SPDX-License-Identifier: Apache-2.0
"""The version of the schema, and its upgrade to the version that this release needs.

There are two branches. *expand* only adds, and runs while services of the previous release are
running; *contract* removes what those need, and runs when they are stopped.
"""

import contextlib

import alembic.command
import alembic.config
from alembic import autogenerate, migration, script, util
from alembic.script.revision import RevisionError

from placement_rpc import exception
from placement_rpc.db import models, sessions
from placement_rpc.db.queries import resource_classes, traits

EXPAND, CONTRACT = "expand", "contract"


def _config(connection=None):
    config = alembic.config.Config()
    config.set_main_option("script_location", "placement_rpc.db:migrations")
    config.attributes["connection"] = connection
    return config


def _scripts():
    return script.ScriptDirectory.from_config(_config())


def newest(branch=EXPAND):
    """Return the last revision of a branch, a str; that of *expand* is the schema's version."""
    return _scripts().get_revision(f"{branch}@head").revision


def _applied(database):
    """Return the set of all revisions that were applied to the database.

    Revisions of a later release, which this one does not know, are among them.
    """
    with database.reader() as connection:
        # Alembic begins with statements about the schema, which do not wait on a Galera cluster.
        connection.exec_driver_sql("SELECT 1")
        heads = migration.MigrationContext.configure(connection).get_current_heads()
    revisions = _scripts()
    found = set(heads)
    for head in heads:
        with contextlib.suppress(util.CommandError, RevisionError):
            found.update(each.revision for each in revisions.iterate_revisions(head, "base"))
    # A later release's revisions follow all revisions of this one.
    later = {head for head in heads if head.isdigit() and head > newest()}
    return found | ({each.revision for each in revisions.iterate_revisions(
        newest(), "base")} if later else set())


def current(database):
    """Return the database's version in the expand branch, a str; None for an empty database."""
    return max((each for each in _applied(database) if each.isdigit()), default=None)


def is_contracted(database):
    """Return whether all of the contract branch was applied."""
    return newest(CONTRACT) in _applied(database)


def sync(database, standard_classes, standard_traits):
    """Upgrade the schema, the standard resource classes and the traits to this release: expand.

    :param standard_classes: dict of class name to id
    :param standard_traits: collection of names
    :returns: str, the database's revision after that
    """
    _upgrade(database, EXPAND)
    sync_standards(database, standard_classes, standard_traits)
    return current(database)


def sync_standards(database, standard_classes, standard_traits):
    """Insert the standard resource classes and traits that the database lacks.

    Each conductor does it when it starts, since their libraries can be newer than at the last
    upgrade of the schema. Of several that do it at once, each finds or inserts all of them.

    :param standard_classes: dict of class name to id
    :param standard_traits: collection of names
    """
    database.write(lambda tx: resource_classes.insert_missing(tx, standard_classes))
    database.write(lambda tx: traits.insert_missing(tx, standard_traits))


def contract(database):
    """Drop columns that this release does not need; the caller checks that no older one runs.

    :returns: str, the contract branch's revision
    """
    _upgrade(database, CONTRACT)
    return newest(CONTRACT)


def _upgrade(database, branch):
    with database.writer() as connection:
        sessions.lift_limits(connection)
        alembic.command.upgrade(_config(connection), f"{branch}@head")


def check(database):
    """Check that the schema is the one that this release needs.

    :raises SchemaOutdated: when it is an older one
    """
    if newest() not in _applied(database):
        raise exception.SchemaOutdated(current=current(database) or "nothing", needed=newest())


def differences(database):
    """Return a list of alembic's operations that would make the schema equal to the models."""
    with database.reader() as connection:
        context = migration.MigrationContext.configure(connection, opts={"compare_type": True})
        return autogenerate.compare_metadata(context, models.metadata)
