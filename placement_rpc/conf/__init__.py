# SPDX-License-Identifier: Apache-2.0
"""Configuration: a module per group, and one private ``ConfigOpts`` per program.

No module-global configuration: two services with different settings live in one process in
the tests, and a client library must not change its host program's options.
"""

import os

from oslo_config import cfg
from oslo_log import log

import placement_rpc
from placement_rpc.conf import opts

PROJECT = "placement-rpc"


def new_config(args=(), config_files=None, prog=PROJECT, **overrides):
    """Make a configuration.

    :param args: list of str, command line arguments that oslo.config understands
    :param config_files: list of paths; None for the standard places
    :param prog: str, the program's name for ``--help``
    :param overrides: values by ``group__option`` or ``option``
    :returns: :class:`oslo_config.cfg.ConfigOpts`
    """
    conf = parse(unparsed(), args, config_files, prog)
    for key, value in overrides.items():
        group, _, name = key.rpartition("__")
        conf.set_override(name, value, group=group or None)
    return conf


def unparsed():
    """:returns: a configuration that more options can be registered on, for :func:`parse`"""
    conf = cfg.ConfigOpts()
    opts.register(conf)
    log.register_options(conf)
    opts.set_library_defaults(conf)
    return conf


def parse(conf, args=(), config_files=None, prog=PROJECT):
    """Read the files and the arguments; see :func:`new_config`."""
    conf(
        args=list(args), project=PROJECT, prog=prog, version=placement_rpc.__version__,
        default_config_files=_standard_files(config_files),
    )
    return conf


def _standard_files(config_files):
    if config_files is not None:
        return list(config_files)
    return [path for path in ("/etc/placement-rpc/placement-rpc.conf",) if os.path.exists(path)]
