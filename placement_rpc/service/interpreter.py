# SPDX-License-Identifier: Apache-2.0
"""How the threads of a program of the service share Python's interpreter."""

import sys

# Seconds after which a thread that computes lets another one compute that waits. Python's own are
# ten times as many. A thread that works on a claim waits for the database and the broker often,
# and each time also for all threads that make large answers, each of them for so long.
_TURN = 0.0005


def take_short_turns():
    """Let quick requests wait less for those that compute for long; for a whole process."""
    sys.setswitchinterval(_TURN)
