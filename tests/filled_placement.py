# SPDX-License-Identifier: Apache-2.0
"""A filled Placement database in SQLite, written once: to write one through its API takes seconds.
"""

import contextlib
import functools
import sqlite3
import tempfile

import sqlalchemy as sa

from tests import placement_cloud, placement_contents


@functools.cache
def _filled():
    """Return a SQLite file with a filled Placement database: it takes seconds to write one."""
    file = tempfile.NamedTemporaryFile(suffix=".sqlite")                # noqa: SIM115
    with placement_cloud.PlacementCloud() as cloud:
        placement_contents.fill(cloud)
        with contextlib.closing(sqlite3.connect(sa.make_url(cloud.url).database)) as source:
            _backup(source, file.name)
    return file


class FilledCloud(placement_cloud.PlacementCloud):
    """A cloud in SQLite that :func:`placement_contents.fill` has filled."""

    def _setUp(self):
        super()._setUp()
        with contextlib.closing(sqlite3.connect(_filled().name)) as source:
            _backup(source, sa.make_url(self.url).database)


def _backup(source, path):
    with contextlib.closing(sqlite3.connect(path)) as target:
        source.backup(target)
