# SPDX-License-Identifier: Apache-2.0
"""The surroundings of the programs that tests start."""

import pathlib
import subprocess
import sys

from tests import base

_ROOT = pathlib.Path(__file__).parents[2]
_DISPOSITION = "import signal; print(signal.getsignal(signal.SIGINT).__qualname__)"
_STARTS_A_CHILD = (
    "import os, signal, subprocess, sys, tests\n"
    f"subprocess.run([sys.executable, '-c', {_DISPOSITION!r}], check=True)\n"
    "os.kill(os.getpid(), signal.SIGINT)\n"
    "print('still here')\n")


class SignalTest(base.TestCase):

    def test_children_can_be_interrupted_where_the_test_process_cannot(self):
        done = subprocess.run(
            ["/bin/sh", "-c", 'trap "" INT; exec "$0" -W ignore -c "$1"', sys.executable,
             _STARTS_A_CHILD], check=True, capture_output=True, text=True, cwd=_ROOT)
        self.assertEqual(["default_int_handler", "still here"], done.stdout.split("\n")[:2])
