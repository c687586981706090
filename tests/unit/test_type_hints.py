# SPDX-License-Identifier: Apache-2.0
"""Public functions of the core packages have type hints, which mypy checks (``make lint``)."""

import ast
import pathlib

import placement_rpc
from tests import base, sources

_ROOT = pathlib.Path(placement_rpc.__file__).parent
_TYPED = ("api.py", "manager.py", "objects", "accounting", "candidates", "rpc", "amqp",
          "cells")
# Signatures that the library of versioned objects sets.
_INHERITED = frozenset((
    "coerce", "get_schema", "to_primitive", "from_primitive", "serialize_entity",
    "deserialize_entity", "serialize_context", "deserialize_context", "obj_to_primitive",
    "obj_class_from_name", "to_json_schema"))
# Annotations of a remotable method are a part of the fingerprint of its object.
_REMOTABLE = ("remotable", "base.remotable")


def _public_functions(body, prefix=""):
    for node in body:
        name = getattr(node, "name", "_")
        if name.startswith("_"):
            continue
        if isinstance(node, ast.ClassDef):
            yield from _public_functions(node.body, f"{name}.")
        elif isinstance(node, ast.FunctionDef) and name not in _INHERITED and not any(
                ast.unparse(each) in _REMOTABLE for each in node.decorator_list):
            yield prefix + name, node


def _untyped(function):
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
             *filter(None, (arguments.vararg, arguments.kwarg))]
    return function.returns is None or any(
        each.annotation is None and each.arg not in ("self", "cls", "context") for each in named)


class TypeHintsTest(base.TestCase):

    def test_no_public_function_is_untyped(self):
        files = [path for name in _TYPED for path in (
            [_ROOT / name] if name.endswith(".py") else sorted((_ROOT / name).rglob("*.py")))]
        self.assertGreater(len(files), 50)
        self.assertEqual([], [
            f"{path.relative_to(_ROOT)}: {name}" for path in files
            for name, function in _public_functions(sources.parsed(path).body)
            if _untyped(function)])
