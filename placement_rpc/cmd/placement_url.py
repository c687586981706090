# SPDX-License-Identifier: Apache-2.0
"""The database of OpenStack Placement that the parsed arguments name.

See :mod:`placement_rpc.cmd.parsers.placement_database`, which adds the arguments.
"""

import pathlib
from typing import NamedTuple

from oslo_config import cfg

from placement_rpc import exception
from placement_rpc.db import urls
from placement_rpc.db.placement import connection, sizes
from placement_rpc.moving import placement_store

_GROUP = "placement_database"
_OPTIONS = [cfg.StrOpt("connection", secret=True),
            cfg.StrOpt("connection_parameters", default="")]
# The owners that Placement's API shows of consumers whose owner it does not know.
_OWNERS = [cfg.StrOpt("incomplete_consumer_project_id", default=placement_store.INCOMPLETE),
           cfg.StrOpt("incomplete_consumer_user_id", default=placement_store.INCOMPLETE)]


class Address(NamedTuple):
    """Placement's database, and the owner of consumers whose owner Placement does not know."""

    url: str
    incomplete_project: str = placement_store.INCOMPLETE
    incomplete_user: str = placement_store.INCOMPLETE

    @property
    def shown(self) -> str:
        """The URL without its password"""
        return urls.without_passwords(self.url, connection.URL)

    def store(self):
        """Return a context manager of a snapshot of it, a :class:`PlacementStore`."""
        return placement_store.opened(*self)

    def sizes(self) -> dict[str, int]:
        """Return about how many rows of each kind it has."""
        with connection.engine(self.url) as engine, connection.snapshot(engine) as begun:
            return sizes.sizes(begun, connection.check_revision(begun))


def is_given(options, name):
    """Return whether a database was named.

    :param name: ``from`` or ``to``, as in the names of the arguments
    """
    return (getattr(options, f"{name}_url"), getattr(options, f"{name}_config")) != (None, None)


def address_of(options, name):
    """Return the :class:`Address` that was given.

    :param options: the parsed arguments
    :param name: as of :func:`is_given`
    :raises InvalidInput: if the file cannot be read, or has no such option
    """
    given = getattr(options, f"{name}_url")
    return Address(given) if given is not None else _of_file(getattr(options, f"{name}_config"))


def _of_file(path):
    conf = cfg.ConfigOpts()
    conf.register_opts(_OPTIONS, _GROUP)
    conf.register_opts(_OWNERS, "placement")
    what = str(path)
    if not pathlib.Path(path).is_file():
        raise exception.InvalidInput(what=what, reason="there is no such file")
    try:
        conf([], default_config_files=[path], default_config_dirs=[])
        found = conf[_GROUP]
        url, parameters = found.connection, found.connection_parameters
    except (cfg.Error, OSError, UnicodeDecodeError) as error:
        raise exception.InvalidInput(what=what, reason=str(error)) from error
    if not url:
        raise exception.InvalidInput(what=what, reason=f"it has no [{_GROUP}] connection")
    if parameters:
        # As Placement itself adds them.
        url += ("&" if "?" in url else "?") + parameters
    return Address(url, conf.placement.incomplete_consumer_project_id,
                   conf.placement.incomplete_consumer_user_id)
