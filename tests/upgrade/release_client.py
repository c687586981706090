# SPDX-License-Identifier: Apache-2.0
"""A client process: JSON lines of calls on its input, JSON lines of answers on its output.

Run as a file by the interpreter of any release, so it imports only what all of them have. The
first line is a dict of ``options``, overrides of the configuration, and ``compute_node``, the
module that has the class ComputeNode. It is answered with ``version``, ``package`` (where
placement_rpc was imported from), ``methods``, the calls that this release's client has, and
``changes``, those of them that take a request id.

Each further line is a dict of ``method`` and ``arguments``, a dict. An argument
``{"!NAME": VALUES}`` is an object of that class. The answer is a dict of ``result``, or of
``error`` with its code, text and values.
"""

import importlib
import inspect
import json
import sys

import placement_rpc
from placement_rpc import api, exception
from placement_rpc import conf as configuration


class Client:
    """Makes the calls of one process.

    :param first: dict, the first line
    """

    def __init__(self, first):
        self._node_module = first["compute_node"]
        self._api = api.PlacementAPI(
            conf=configuration.new_config(config_files=[], **first["options"]))

    def methods(self, parameter):
        """Return the names of the calls that have a parameter: list of str."""
        return [name for name, function in inspect.getmembers(
            type(self._api), inspect.isfunction)
            if parameter in inspect.signature(function).parameters and not name.startswith("_")]

    def call(self, method, arguments):
        """Make a call.

        :returns: dict, the answer
        """
        try:
            found = getattr(self._api, method)(
                None, **{name: self._object(value) for name, value in arguments.items()})
        except exception.PlacementException as error:
            return {"error": as_json(error)}
        return {"result": as_json(found)}

    def _object(self, value):
        """Return an argument, or the object that it stands for."""
        if isinstance(value, list):
            return [self._object(each) for each in value]
        if not isinstance(value, dict) or not any(name.startswith("!") for name in value):
            return value
        (name, values), = value.items()
        if name == "!ComputeNode":
            return importlib.import_module(self._node_module).ComputeNode.read(values)
        return getattr(api, name[1:])(**values)


def as_json(value):
    """Return what a call answered as JSON types; of an object, the fields that are set."""
    if isinstance(value, exception.PlacementException):
        return {"code": value.code, "text": value.text, "values": as_json(value.kwargs)}
    if hasattr(value, "result") and hasattr(value, "fields"):
        return _outcome(value)
    if hasattr(value, "obj_attr_is_set"):
        return {name: as_json(getattr(value, name)) for name in sorted(value.fields)
                if value.obj_attr_is_set(name)}
    if isinstance(value, dict):
        return {str(name): as_json(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def _outcome(value):
    """Return the outcome of a request, from get_request_result."""
    try:
        return {"accepted": as_json(value.result())}
    except exception.PlacementException as error:
        return {"refused": as_json(error)}


def main():
    client = Client(json.loads(sys.stdin.readline()))
    print(json.dumps({"version": placement_rpc.__version__, "package": placement_rpc.__file__,
                      "methods": client.methods("context"),
                      "changes": client.methods("request_id")}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(client.call(asked["method"], asked["arguments"])), flush=True)


if __name__ == "__main__":
    main()
