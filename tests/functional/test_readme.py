# SPDX-License-Identifier: Apache-2.0
"""The README's commands over HTTP, run as they are written."""

import os
import pathlib
import re
import subprocess
import sys

from placement_rpc.testing.facade import Facade
from tests import base

_README = pathlib.Path(__file__).parents[2] / "README.rst"


class ReadmeTest(base.TestCase):
    time_limit = 300

    def test_curl_and_openstack(self):
        section = re.search(r"^Over HTTP\n=+\n(.*?)^=+$", _README.read_text(),
                            re.MULTILINE | re.DOTALL)[1]
        blocks = re.findall(r"::\n\n((?:    .*\n|\n)+)", section)
        script = "\n".join(line[4:] for block in blocks[:2] for line in block.splitlines())
        self.assertGreater(script.count("curl"), 3)
        self.assertGreater(script.count("openstack "), 6)
        url = self.useFixture(Facade()).url
        self.assertIn("http://127.0.0.1:8778", script)
        done = subprocess.run(
            ["bash", "-eux", "-c", script.replace("http://127.0.0.1:8778", url)],
            check=False, capture_output=True, text=True,
            env={**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"})
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for words in ("resource_provider.create", "VCPU", "capacity", "allocation.create",
                      "└─ gpu0", "HW_GPU_API_VULKAN", "VGPU=4"):
            self.assertIn(words, done.stdout)
