# SPDX-License-Identifier: Apache-2.0
"""The dispatcher: which methods and versions can be called, and the content of failures."""

from placement_rpc import exception
from placement_rpc.rpc.dispatcher import Dispatcher
from placement_rpc.rpc.endpoint import Endpoint, exposed
from placement_rpc.versions import contract
from tests import base


class _Endpoint(Endpoint):

    calls = {"double": contract.Call(), "fail": contract.Call()}

    @exposed
    def double(self, context, number):
        return 2 * number

    @exposed
    def fail(self, context):
        raise RuntimeError("the password is hunter2")

    def hidden(self, context):
        return "not for the bus"

    @property
    def computed(self):
        raise AssertionError("a message must not make the endpoint compute an attribute")


class DispatcherTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.dispatcher = Dispatcher(_Endpoint())

    def refused(self, version, method, args=None, namespace=None):
        """Check that both ways into the dispatcher refuse a call; return the error."""
        call = (version, method, {}, {} if args is None else args, namespace)
        self.assertRaises(exception.UnsupportedCall, self.dispatcher.arguments, *call)
        return self.assertRaises(exception.UnsupportedCall, self.dispatcher.answer, *call)

    def test_an_exposed_method(self):
        self.assertEqual(14, self.dispatcher.answer("1.0", "double", {}, {"number": 7}))
        context, arguments = self.dispatcher.arguments("1.1", "double", {}, {"number": 7})
        self.assertEqual(("1.1", {"number": 7}), (context.manifest, arguments))

    def test_only_exposed_methods_can_be_called(self):
        for method in ("hidden", "computed", "database", "__init__", "no_such_method", "", None,
                       5, ["double"]):
            self.assertIn("no method", self.refused("1.0", method).text)

    def test_versions_of_the_contract(self):
        for version in ("1.99", "2.0", "0.9", "1", "1.0.0", "1.x", "", None, 5, [], "1.99999"):
            self.assertIn(str(version), self.refused(version, "double").text)

    def test_there_are_no_namespaces(self):
        self.refused("1.0", "double", namespace="other")

    def test_arguments_that_the_method_does_not_have(self):
        for args in ({}, {"number": 1, "other": 2}, {"self": 1, "number": 1}):
            self.assertIn("double", self.refused("1.0", "double", args).text)

    def test_a_defect_is_logged_and_not_told(self):
        error = self.assertRaises(
            exception.RemoteFailure, self.dispatcher.answer, "1.0", "fail", {}, {})
        self.assertNotIn("hunter2", str(error))
        self.assertIn("hunter2", self.log.output)
        self.assertIn(error.kwargs["incident"], self.log.output)
