# SPDX-License-Identifier: Apache-2.0
"""The schema's version: where it is, and bringing it to where this release needs it."""

import alembic.command
import alembic.config
from alembic import autogenerate, migration, script

from placement_rpc import exception
from placement_rpc.db import models
from placement_rpc.db.queries import resource_classes


def _config(connection=None):
    config = alembic.config.Config()
    config.set_main_option("script_location", "placement_rpc.db:migrations")
    config.attributes["connection"] = connection
    return config


def newest():
    """:returns: str, the revision that this release needs"""
    return script.ScriptDirectory.from_config(_config()).get_current_head()


def current(database):
    """:returns: str, the revision of the database; None for an empty one"""
    with database.reader() as connection:
        return migration.MigrationContext.configure(connection).get_current_revision()


def sync(database, standard_classes):
    """Bring the schema and the standard resource classes up to this release.

    :param standard_classes: dict of class name to id
    :returns: str, the revision the database now has
    """
    with database.engine.connect() as connection:
        alembic.command.upgrade(_config(connection), "head")
        connection.commit()
    database.write(lambda tx: resource_classes.insert_missing(tx, standard_classes))
    return current(database)


def check(database):
    """:raises SchemaOutdated: when the schema is not the one that this release needs"""
    found, needed = current(database), newest()
    if found != needed:
        raise exception.SchemaOutdated(current=found or "nothing", needed=needed)


def differences(database):
    """:returns: list, what alembic would change to make the schema equal to the models"""
    with database.reader() as connection:
        context = migration.MigrationContext.configure(connection, opts={"compare_type": True})
        return autogenerate.compare_metadata(context, models.metadata)
