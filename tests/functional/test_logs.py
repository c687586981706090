# SPDX-License-Identifier: Apache-2.0
"""The log of a program whose file cannot be opened again."""

import pathlib
import subprocess
import sys

import fixtures

from tests import base

_PROGRAM = """
import logging, pathlib, shutil, sys
from placement_rpc.conf import service
from placement_rpc.service import logs
path = pathlib.Path(sys.argv[1])
logs.setup(service.new_config([f"--log-file={path}"]))
log = logging.getLogger("placement_rpc.test")
log.error("one")
shutil.rmtree(path.parent)
log.error("two")
log.error("three")
path.parent.mkdir()
log.error("four")
"""


class LogTest(base.TestCase):

    def test_a_file_that_cannot_be_opened_again_does_no_harm(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "logs", "log")
        path.parent.mkdir()
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", _PROGRAM, str(path)],
                              capture_output=True, text=True, timeout=60, check=True)
        for text in ("two", "three"):
            self.assertIn(f"Message: '{text}'", done.stderr)
        self.assertEqual(2, done.stderr.count("No such file or directory"))
        self.assertEqual(["four"], [
            line.rpartition(" ")[2] for line in path.read_text().splitlines()])
