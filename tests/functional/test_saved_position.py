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
        state = {"position": 9, "missing": [[3, 4]], "epoch": "b", "ended_epochs": ["a"],
                 "trying": {"of": "x", "attempts": 1}}
        saved.save(state)
        self.assertEqual(state, saved.load())
        self.assertEqual([self.path], list(self.path.parent.iterdir()))

    def test_another_file_is_an_error_and_stays(self):
        for text in ("", "42", "{}", "[1]", "nonsense", '{"position": "7"}',
                     '{"position": 7, "missing": null}', '{"position": 7, "missing": [5]}',
                     '{"position": 7, "missing": [[1, 2, 3]]}', '{"position": 7, "trying": []}',
                     '{"position": 7, "ended_epochs": [1]}', '{"position": 7, "epoch": 1}'):
            self.path.write_text(text)
            error = self.assertRaises(ValueError, SavedPosition(self.path).load)
            self.assertIn(str(self.path), str(error))
            self.assertEqual(text, self.path.read_text())

    def test_a_place_that_cannot_be_written_is_found_at_once(self):
        """Not after the first event was handled, which would be handled again."""
        self.assertRaises(
            FileNotFoundError, SavedPosition(self.path / "no" / "directory").load)
