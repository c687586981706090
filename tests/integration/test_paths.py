# SPDX-License-Identifier: Apache-2.0
"""The pages for each reader, and the README on billing: their commands work as written."""

import pathlib
import re

from tests import base, documented, servers

_ROOT = pathlib.Path(__file__).parents[2]
_DOCS = _ROOT / "docs" / "source"
_READERS = ("nova", "scheduler", "billing", "operator", "contributor")


def _shape(line):
    """Return a line of a table without the amounts and the widths of its columns."""
    return " ".join(re.sub(r"\d[\d,.]*(?=\s)", "N", re.sub("─+", "─", line)).split())


class DocumentCase(base.TestCase):
    # Some commands take seconds to start, and the demo places thousands of consumers.
    time_limit = 400

    def clone(self):
        return self.useFixture(documented.Clone(self.useFixture(servers.VirtualHost()).url))


class ReadmeTest(DocumentCase):

    def test_billing(self):
        section = re.search(r"^Billing\n=+\n(.*?)^=+$", (_ROOT / "README.rst").read_text(),
                            re.MULTILINE | re.DOTALL)[1]
        script = re.search(r"::\n\n((?:    .*\n)+)", section)[1]
        self.assertIn("make demo TRANSPORT_URL=", script)
        printed = self.clone().run(self, "\n".join(map(str.strip, script.splitlines())))
        self.assertIn("The usages are equal to the usage report from events.", printed)
        shapes = {_shape(line) for line in printed.splitlines()}
        table = documented.blocks(section, "text")[0].strip().splitlines()
        self.assertEqual([], [line for line in table if _shape(line) not in shapes], printed)


class PathsTest(DocumentCase):

    def follow(self, reader):
        """Run all commands of a page; return what they print."""
        page = (_DOCS / f"path_{reader}.rst").read_text()
        output = self.clone().run(self, "\n".join(documented.blocks(page, "bash")))
        self.assertEqual([], documented.missing(page, output), output)
        return output

    def test_a_nova_developer(self):
        self.assertIn("cmp1", self.follow("nova"))

    def test_the_author_of_a_scheduler(self):
        self.assertIn("VCPU", self.follow("scheduler"))

    def test_a_billing_developer(self):
        output = self.follow("billing")
        self.assertIn("The usages are equal to the usage report from events.", output)
        self.assertIn("resource_hours", output)

    def test_an_operator(self):
        self.assertIn("placement_rpc_outbox", self.follow("operator"))

    def test_a_contributor(self):
        self.assertIn("OK", self.follow("contributor"))

    def test_the_tutorial_leads_to_each(self):
        tutorial, index = (
            (_DOCS / name).read_text() for name in ("tutorial.rst", "index.rst"))
        for reader in _READERS:
            self.assertIn(f":doc:`path_{reader}`", tutorial)
            self.assertIn(f"   path_{reader}\n", index)
