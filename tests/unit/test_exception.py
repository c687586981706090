# SPDX-License-Identifier: Apache-2.0
"""Errors: stable codes, and the same error at the other end of the bus."""

import pickle
import string

from oslo_messaging._drivers import common

from placement_rpc import exception
from placement_rpc.rpc import envelope
from tests import base


def _tree():
    return [cls for cls in vars(exception).values()
            if isinstance(cls, type) and issubclass(cls, exception.PlacementException)]


def _example(cls):
    names = [name for _, name, _, _ in string.Formatter().parse(cls.message) if name]
    return cls(**{name: f"the {name}" for name in names})


class ErrorTest(base.TestCase):

    def test_no_two_errors_share_a_code(self):
        codes = [cls.code for cls in _tree()]
        self.assertEqual(sorted(set(codes)), sorted(codes))

    def test_every_error_survives_the_bus(self):
        for cls in _tree():
            error = _example(cls)
            text = common.serialize_remote_exception((cls, error, None))
            received = common.deserialize_remote_exception(text, envelope.ALLOWED_REMOTE_MODULES)
            self.assertIsInstance(received, cls)
            self.assertEqual((error.text, error.kwargs), (received.text, received.kwargs))

    def test_every_error_survives_pickling_and_storing(self):
        for cls in _tree():
            error = _example(cls)
            for copy in (pickle.loads(pickle.dumps(error)),
                         exception.from_code(error.code, error.kwargs)):
                self.assertIs(cls, type(copy))
                self.assertEqual(str(error), str(copy))

    def test_an_error_of_a_newer_service_keeps_its_code_and_values(self):
        error = exception.from_code("placement.newer", {"provider": "a"})
        self.assertEqual("placement.newer", error.code)
        self.assertIn("a", str(error))

    def test_a_value_that_was_left_out_does_not_break_the_message(self):
        self.assertIn("<capacity>", str(exception.CapacityExceeded(provider="a")))

    def test_a_brace_in_a_value_stays_a_brace(self):
        self.assertIn("{x}", str(exception.NameInUse(name="{x}")))

    def test_what_may_be_tried_again(self):
        self.assertEqual(
            {"DeadlineExceeded", "ReadTimedOut", "ServiceUnavailable", "ServiceOverloaded",
             "StoreUnavailable", "StoreBusy", "StoreHeld", "CellUnreachable"},
            {cls.__name__ for cls in _tree() if cls.retryable})
