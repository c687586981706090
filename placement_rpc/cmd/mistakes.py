# SPDX-License-Identifier: Apache-2.0
"""Mistakes of whoever starts a program: one clear line instead of a trace."""

import functools
import sys

import oslo_messaging
from oslo_config import cfg

from placement_rpc import exception

_MISTAKES = (
    exception.PlacementException, cfg.Error, oslo_messaging.DriverLoadFailure,
    oslo_messaging.InvalidTransportURL, OSError, ValueError,
)


def told(program):
    """Decorate a ``main`` that returns an exit code: 1, and one line, for a mistake.

    :param program: str, the name to begin the line with
    """
    def decorate(main):
        @functools.wraps(main)
        def run(args=None):
            try:
                return main(args)
            except _MISTAKES as error:
                print(f"{program}: {str(error).strip() or type(error).__name__}",
                      file=sys.stderr)
                return 1
        return run
    return decorate
