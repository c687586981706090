# SPDX-License-Identifier: Apache-2.0
"""Imports point one way (DESIGN section 1)."""

import ast
import itertools
import pathlib

import placement_rpc
from tests import base, sources

_ROOT = pathlib.Path(placement_rpc.__file__).parent

# DESIGN section 1: a part may import what stands to its right, and what that may import.
_RULE = """
    cmd  >  testing  >  service  >  manager, http, notifications
    cmd  >  audit  >  accounting
    manager  >  endpoints  >  rpc
    endpoints  >  upgrade  >  nova  >  accounting  >  candidates  >  db
    notifications  >  db
    cmd  >  moving  >  accounting
    http  >  api  >  client  >  rpc
    cells  >  api
    service, rpc, notifications  >  amqp
"""
# Every part may import these, and they each other; osc, which speaks HTTP, imports nothing else.
_SHARED = {"objects", "versions", "telemetry", "conf", "policies", "schemas", "exception",
           "context", "policy", "backoff", "bodies", "json_text", "oslo_envelope",
           "spool"}
# The module that a WSGI server loads starts a process, as the programs do.
_PROGRAMS = {"http/wsgi.py": "cmd"}


def _below():
    """Return what each part may import: a dict of part to set of parts."""
    edges = {}
    for line in _RULE.split("\n"):
        groups = [[part.strip() for part in group.split(",")] for group in line.split(">")]
        for uppers, lowers in itertools.pairwise(groups):
            for upper in uppers:
                edges.setdefault(upper, set()).update(lowers)

    def closure(part):
        return set().union(*({each} | closure(each) for each in edges.get(part, ())))

    parts = {*edges, *itertools.chain.from_iterable(edges.values())}
    return {**{part: closure(part) | _SHARED for part in parts},
            **dict.fromkeys(_SHARED, _SHARED), "osc": set()}


def _imports(path):
    """The parts of the project that a file imports."""
    for node in ast.walk(sources.parsed(path)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("placement_rpc"):
            parts = node.module.split(".")
            yield from ([parts[1]] if len(parts) > 1 else (alias.name for alias in node.names))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                if parts[0] == "placement_rpc" and len(parts) > 1:
                    yield parts[1]


class ImportGraphTest(base.TestCase):

    def test_nothing_points_back_up(self):
        below, wrong = _below(), []
        for path in _ROOT.rglob("*.py"):
            name = str(path.relative_to(_ROOT))
            part = path.relative_to(_ROOT).parts[0].removesuffix(".py")
            if part == "__init__":
                continue
            allowed = below[_PROGRAMS.get(name, part)] | {part, "__version__"}
            wrong += [f"{name} imports {each}" for each in _imports(path) if each not in allowed]
        self.assertEqual([], wrong)

    def test_the_rule_has_no_circle(self):
        self.assertEqual([], [part for part, lower in _below().items()
                              if part not in _SHARED and part in lower])

    def test_sql_is_written_in_db_alone(self):
        wrong = [str(path.relative_to(_ROOT)) for path in _ROOT.rglob("*.py")
                 if "sqlalchemy" in path.read_text()
                 and path.relative_to(_ROOT).parts[0] not in ("db", "cmd", "testing")]
        self.assertEqual([], wrong)
