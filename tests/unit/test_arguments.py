# SPDX-License-Identifier: Apache-2.0
"""Types of the programs' arguments."""

import argparse
import contextlib
import io

from placement_rpc.cmd import arguments
from placement_rpc.cmd.parsers import placement_export, placement_import
from tests import base


class PositiveTest(base.TestCase):

    def test_numbers(self):
        self.assertEqual([1, 20], [arguments.positive(text) for text in ("1", "020")])

    def test_an_error_names_what_was_given(self):
        for module, command in ((placement_import, "import"),
                                (placement_export, "export")):
            parser = argparse.ArgumentParser()
            module.add_command(parser.add_subparsers())
            for text in ("0", "-1", "x", "²", ""):
                with contextlib.redirect_stderr(io.StringIO()) as errors:
                    self.assertRaises(
                        SystemExit, parser.parse_args, [command, f"--batch={text}"])
                self.assertIn(f"argument --batch: {text!r} is not a whole number above zero",
                              errors.getvalue())
