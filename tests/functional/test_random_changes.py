# SPDX-License-Identifier: Apache-2.0
"""The store does what a simple model says, after every one of many random changes."""

from tests import base
from tests.functional import random_changes


class RandomChangesTest(base.TestCase):

    time_limit = 600

    def test_store_and_model_agree(self):
        random_changes.run(random_changes.RandomChanges, base.examples(15))
