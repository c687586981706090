# SPDX-License-Identifier: Apache-2.0
"""The tests of placement_rpc."""

import signal

# Before any module that imports oslo.messaging: it selects the threading backend.
import placement_rpc.cmd  # noqa: F401


def _ignore_interrupts_here_only():
    """Keep an ignored SIGINT from being inherited by the programs that tests start.

    A shell without job control starts background commands with SIGINT ignored. exec() passes that
    on but resets a signal that has a handler to its default, so the programs can be interrupted.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)


_ignore_interrupts_here_only()
