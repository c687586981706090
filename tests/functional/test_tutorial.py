# SPDX-License-Identifier: Apache-2.0
"""The commands of the tutorial, run as they are written, print what the tutorial shows."""

import pathlib

from tests import base, documented

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "source" / "tutorial.rst"


class TutorialTest(base.TestCase):
    time_limit = 300

    def test_its_commands(self):
        page = _PAGE.read_text()
        script = "\n".join(documented.blocks(page, "bash"))
        self.assertGreater(script.count("openstack "), 9)
        output = documented.run(self, script)
        self.assertEqual([], documented.missing(page, output), output)
        self.assertIn('"allocation_requests":[{', output)

    def test_the_other_blocks_start_the_service(self):
        self.assertEqual(["$ make run"], [
            each.strip() for each in documented.blocks(_PAGE.read_text(), "console")])
