# SPDX-License-Identifier: Apache-2.0
"""The arguments by which programs with commands find their configuration.

The conductor and ``placement-rpc-status`` have the same arguments from oslo.config itself.
"""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--config-file`` and ``--config-dir``."""
    parser.add_argument(
        "--config-file", action="append", default=[], metavar="PATH",
        help="configuration file; may be given several times "
             "(default: /etc/placement-rpc/placement-rpc.conf)")
    parser.add_argument(
        "--config-dir", action="append", default=[], metavar="PATH",
        help="directory of configuration files, whose *.conf are read after the other files, in "
             "alphabetical order; may be given several times "
             "(default: /etc/placement-rpc/placement-rpc.conf.d)")


def arguments(options: argparse.Namespace) -> list[str]:
    """Return the arguments for :func:`placement_rpc.conf.new_config`.

    :param options: the parsed arguments of the program
    """
    return [*(f"--config-file={path}" for path in options.config_file),
            *(f"--config-dir={path}" for path in options.config_dir)]
