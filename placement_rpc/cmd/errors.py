# SPDX-License-Identifier: Apache-2.0
"""Mistakes of whoever starts a program: one clear line instead of a trace."""

import functools
import os
import sys

import oslo_messaging
from oslo_config import cfg

from placement_rpc import exception

_MISTAKES = (
    exception.PlacementException, cfg.Error, oslo_messaging.DriverLoadFailure,
    oslo_messaging.InvalidTransportURL, OSError, ValueError,
)


def one_line_errors(program, failure=1):
    """Decorate a ``main`` that returns an exit code: one line, and ``failure``, for a mistake.

    130 where it was interrupted, and 0 where the reader of a pipe had enough.

    :param program: str, the name to begin the line with
    :param failure: int, the exit code
    """
    def decorate(main):
        @functools.wraps(main)
        def run(args=None):
            try:
                return main(args)
            except KeyboardInterrupt:
                return 130
            except BrokenPipeError:
                # Whoever read the pipe has enough. The interpreter would complain once more at
                # its end.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            except _MISTAKES as error:
                print(f"{program}: {str(error).strip() or type(error).__name__}",
                      file=sys.stderr)
                return failure
        return run
    return decorate
