# SPDX-License-Identifier: Apache-2.0
"""The schema's version: where it is, and bringing it to where this release needs it.

There are two branches. *expand* only adds, and runs while services of the release before are at
work; *contract* takes away what they need, and runs when they are gone.
"""

import contextlib

import alembic.command
import alembic.config
from alembic import autogenerate, migration, script, util
from alembic.script.revision import RevisionError

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import resource_classes

EXPAND, CONTRACT = "expand", "contract"


def _config(connection=None):
    config = alembic.config.Config()
    config.set_main_option("script_location", "placement_rpc.db:migrations")
    config.attributes["connection"] = connection
    return config


def _scripts():
    return script.ScriptDirectory.from_config(_config())


def newest(branch=EXPAND):
    """:returns: str, the last revision of a branch; the schema's version is the expand branch's"""
    return _scripts().get_revision(f"{branch}@head").revision


def _applied(database):
    """:returns: set of str, every revision that the database has had; those of a later release,
    which this one does not know, among them"""
    with database.reader() as connection:
        heads = migration.MigrationContext.configure(connection).get_current_heads()
    revisions = _scripts()
    found = set(heads)
    for head in heads:
        with contextlib.suppress(util.CommandError, RevisionError):
            found.update(each.revision for each in revisions.iterate_revisions(head, "base"))
    # What a release after this one added stands on all that this one has.
    later = {head for head in heads if head.isdigit() and head > newest()}
    return found | ({each.revision for each in revisions.iterate_revisions(
        newest(), "base")} if later else set())


def current(database):
    """:returns: str, the database's version in the expand branch; None for an empty one"""
    return max((each for each in _applied(database) if each.isdigit()), default=None)


def is_contracted(database):
    """:returns: bool, whether the contract branch has been run to its end"""
    return newest(CONTRACT) in _applied(database)


def sync(database, standard_classes):
    """Bring the schema and the standard resource classes up to this release: expand.

    :param standard_classes: dict of class name to id
    :returns: str, the revision the database now has
    """
    _upgrade(database, EXPAND)
    database.write(lambda tx: resource_classes.insert_missing(tx, standard_classes))
    return current(database)


def contract(database):
    """Take away what no service of this release needs; whoever calls made sure that none does.

    :returns: str, the contract branch's revision
    """
    _upgrade(database, CONTRACT)
    return newest(CONTRACT)


def _upgrade(database, branch):
    with database.writer() as connection:
        alembic.command.upgrade(_config(connection), f"{branch}@head")


def check(database):
    """:raises SchemaOutdated: when the schema is not the one that this release needs"""
    if newest() not in _applied(database):
        raise exception.SchemaOutdated(current=current(database) or "nothing", needed=newest())


def differences(database):
    """:returns: list, what alembic would change to make the schema equal to the models"""
    with database.reader() as connection:
        context = migration.MigrationContext.configure(connection, opts={"compare_type": True})
        return autogenerate.compare_metadata(context, models.metadata)
