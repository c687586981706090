# SPDX-License-Identifier: Apache-2.0
"""The README: its commands over HTTP, its length, and the files that it names."""

import pathlib
import re

from tests import base, documented

_ROOT = pathlib.Path(__file__).parents[2]
_README = _ROOT / "README.rst"


class ReadmeTest(base.TestCase):
    time_limit = 300

    def test_the_commands_over_http(self):
        section = re.search(r"^Over HTTP\n=+\n(.*?)^=+$", _README.read_text(),
                            re.MULTILINE | re.DOTALL)[1]
        block = re.search(r"::\n\n((?:    .*\n|\n)+)", section)[1]
        script = "\n".join(line[4:] for line in block.splitlines())
        self.assertGreater(script.count("curl"), 0)
        self.assertGreater(script.count("openstack "), 4)
        printed = documented.run(self, script)
        for words in ("resource_provider.create", "VCPU", "capacity", "allocation.create"):
            self.assertIn(words, printed)

    def test_it_is_short(self):
        self.assertLessEqual(len(_README.read_text().splitlines()), 150)

    def test_the_files_that_it_names_exist(self):
        named = re.findall(r"\b((?:docs|examples)/[\w./-]+\w)", _README.read_text())
        self.assertGreater(len(named), 8)
        self.assertEqual([], [each for each in named if not (_ROOT / each).exists()])
