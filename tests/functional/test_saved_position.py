# SPDX-License-Identifier: Apache-2.0
"""The file in which a listener keeps what it has handled."""

import pathlib

import fixtures

from placement_rpc.notifications.sequence import SavedPosition
from tests import base


class SavedPositionTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "position")

    def test_it_is_kept(self):
        saved = SavedPosition(self.path)
        self.assertIsNone(saved.load())
        for position in (1, 2):
            saved.save({"position": position, "missing": []})
        self.assertEqual({"position": 2, "missing": []}, SavedPosition(str(self.path)).load())
        self.assertEqual([self.path], list(self.path.parent.iterdir()))

    def test_another_file_is_an_error_and_stays(self):
        for text in ("", "42", "{}", "[1]", "nonsense"):
            self.path.write_text(text)
            self.assertRaises(ValueError, SavedPosition(self.path).load)
            self.assertEqual(text, self.path.read_text())
