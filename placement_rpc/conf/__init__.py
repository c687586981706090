# SPDX-License-Identifier: Apache-2.0
"""Configuration: a module per group, and a private ``ConfigOpts`` per program.

There is no module-global configuration: the tests run services with different settings in one
process, and a client library must not change the options of its host program.

A client gets its configuration here. A service gets it from :mod:`placement_rpc.conf.service`,
which adds the options of libraries that a client does not install.
"""

import itertools
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
    return parse(unparsed(), args, config_files, prog, **overrides)


def unparsed():
    """Return a configuration on which more options can be registered before :func:`parse`."""
    conf = cfg.ConfigOpts()
    opts.register(conf)
    log.register_options(conf)
    opts.set_library_defaults(conf)
    return conf


def parse(conf, args=(), config_files=None, prog=PROJECT, **overrides):
    """Read the files and the arguments; see :func:`new_config`.

    :raises oslo_config.cfg.Error: if a file cannot be read, or an option has no valid value
    """
    files = _standard_files(config_files)
    try:
        conf(args=list(args), project=PROJECT, prog=prog, version=placement_rpc.__version__,
             default_config_files=files)
    except UnicodeDecodeError:
        raise cfg.Error("A configuration file is not UTF-8 text: "
                        f"{', '.join([*files, *_files_in(args)])}") from None
    _check_values(conf)
    for key, value in overrides.items():
        group, _, name = key.rpartition("__")
        conf.set_override(name, value, group=group or None)
    return conf


def _files_in(args):
    """Return the configuration files and directories that arguments name, as a list."""
    args = list(args)
    names = ("--config-file", "--config-dir")
    after = [following for each, following in itertools.pairwise(args) if each in names]
    return after + [path for name, _, path in (each.partition("=") for each in args)
                    if path and name in names]


def _check_values(conf):
    """Read every option, so that a wrong value is found at the start and not at its first use.

    :raises oslo_config.cfg.Error: for the first that is wrong
    """
    for value in conf.values():
        if isinstance(value, cfg.ConfigOpts.GroupAttr):
            for _ in value.values():
                continue


def _standard_files(config_files):
    if config_files is not None:
        return list(config_files)
    return [path for path in ("/etc/placement-rpc/placement-rpc.conf",) if os.path.exists(path)]
