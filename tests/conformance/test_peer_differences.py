# SPDX-License-Identifier: Apache-2.0
"""The list of the peer's tests that fail here on purpose."""

from tests import base
from tests.conformance import peer_differences, peer_suite

_MOST = 30


class ListTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.listed = [(file, name) for files in peer_differences.FAILURES.values()
                       for file, names in files.items() for name in names]

    def test_it_is_short(self):
        self.assertLessEqual(len(self.listed), _MOST)

    def test_every_entry_is_one_test_of_the_peer(self):
        for file, name in self.listed:
            names = [test["name"] for test in peer_suite.content(file)["tests"]]
            self.assertEqual(1, names.count(name), f"{file}: {name}")

    def test_none_is_listed_twice(self):
        self.assertEqual(len(self.listed), len(set(self.listed)))
