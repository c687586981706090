# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage db``: the schema of the database, and the data that it keeps."""

import contextlib
import sys

from placement_rpc import exception
from placement_rpc.accounting import traits
from placement_rpc.cmd import output
from placement_rpc.db import migration, schema_version
from placement_rpc.objects import class_names


def sync(database, _options, _conf):
    before = schema_version.current(database)
    with applying("Upgrading the schema", database, migration.EXPAND) as report:
        after = migration.sync(database, class_names.STANDARD_IDS, traits.STANDARD, report)
    print(f"The schema is at {after}" + (
        "; it already was" if before == after else f"; it was at {before or 'nothing'}"))
    return 0


@contextlib.contextmanager
def applying(text, database, branch):
    """Show the revisions of a branch that are applied in a block.

    :param text: str, what the block does
    :returns: context manager that gives a callable of the name of each revision
    """
    with output.interruptible(
            "placement-rpc-manage",
            lambda: f"the schema is at {_version(database)}",
            "run it again to go on"), output.progress(
                text, lambda: migration.missing(database, branch)) as advance:
        yield lambda revision: advance(1, f"{text}: {revision}")


def _version(database):
    try:
        return schema_version.current(database) or "nothing"
    except exception.PlacementException as error:
        # The database may be what was waited for.
        return f"an unknown version: {error}"


def version(database, _options, _conf):
    current, newest = schema_version.current(database), schema_version.newest()
    print(current or "empty")
    if current != newest:
        print(f"this release needs {newest}: run 'placement-rpc-manage db sync'",
              file=sys.stderr)
        return 1
    return 0
