# SPDX-License-Identifier: Apache-2.0
"""Options that name the database of OpenStack Placement.

A URL on the command line is in the process list, with its password, while the command runs. So the
address can also be read from Placement's own configuration file.
"""

import pathlib

from oslo_config import cfg

from placement_rpc import exception

_GROUP = "placement_database"
_OPTIONS = [cfg.StrOpt("connection", secret=True),
            cfg.StrOpt("connection_parameters", default="")]


def add_arguments(command, name, text):
    """Add ``--NAME URL`` and ``--NAME-config PATH``, one of which has to be given.

    :param command: the parser of the command
    :param name: str, ``from`` or ``to``
    :param text: str, what the database is, as the help says it
    """
    group = command.add_mutually_exclusive_group(required=True)
    group.add_argument(f"--{name}", dest=f"{name}_url", metavar="URL",
                       help=f"SQLAlchemy URL of {text}; it is visible in the process list")
    group.add_argument(f"--{name}-config", dest=f"{name}_config", metavar="PATH",
                       help=f"read that URL from Placement's configuration file, option "
                            f"[{_GROUP}] connection, so that its password is in no process list")


def url_of(options, name):
    """Return the URL that was given, as text.

    :param options: the parsed arguments
    :param name: as for :func:`add_arguments`
    :raises InvalidInput: if the file cannot be read, or has no such option
    """
    given = getattr(options, f"{name}_url")
    return given if given is not None else _of_file(getattr(options, f"{name}_config"))


def _of_file(path):
    conf = cfg.ConfigOpts()
    conf.register_opts(_OPTIONS, _GROUP)
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
    return url
