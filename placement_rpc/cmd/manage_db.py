# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage db``: the schema of the database, and the data that it keeps."""

import sys

from placement_rpc.accounting import traits
from placement_rpc.db import migration, schema_version
from placement_rpc.objects import class_names


def sync(database, _options, _conf):
    before = schema_version.current(database)
    after = migration.sync(database, class_names.STANDARD_IDS, traits.STANDARD)
    print(f"The schema is at {after}" + (
        "; it already was" if before == after else f"; it was at {before or 'nothing'}"))
    return 0


def version(database, _options, _conf):
    current, newest = schema_version.current(database), schema_version.newest()
    print(current or "empty")
    if current != newest:
        print(f"this release needs {newest}: run 'placement-rpc-manage db sync'",
              file=sys.stderr)
        return 1
    return 0
