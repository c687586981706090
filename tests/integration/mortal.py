# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-conductor`` with workers that die of some calls, as of a defect in a C library.

A worker that reads a call of the user ``killer`` is killed with -9.
"""

import os
import signal
import sys

from placement_rpc.cmd import conductor
from placement_rpc.rpc import envelope

_open_call = envelope.open_call


def _open(body, *arguments):
    call = _open_call(body, *arguments)
    if "killer" in str(call.args):
        os.kill(os.getpid(), signal.SIGKILL)
    return call


if __name__ == "__main__":
    envelope.open_call = _open
    sys.exit(conductor.main())
