# SPDX-License-Identifier: Apache-2.0
"""Expected errors of the programs: one clear line instead of a traceback."""

import functools
import os
import sys

import oslo_messaging
from oslo_config import cfg

from placement_rpc import exception


class ExtraMissing(Exception):
    """A command needs an extra of the package that is not installed."""


_EXPECTED = (
    ExtraMissing, exception.PlacementException, cfg.Error, oslo_messaging.InvalidTransportURL,
    OSError, ValueError,
)


def one_line_errors(program, failure=1):
    """Decorate a ``main`` so that it prints one line for an expected error.

    Its exit code is then ``failure``; it is 130 after an interrupt, and 0 if the reader of its
    output closed the pipe.

    :param program: str, the name at the beginning of the line
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
                # Without this, the interpreter would fail again when it flushes standard output
                # at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
            except _EXPECTED as error:
                print(f"{program}: {str(error).strip() or type(error).__name__}",
                      file=sys.stderr)
                return failure
        return run
    return decorate
