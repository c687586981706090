# SPDX-License-Identifier: Apache-2.0
"""Imports point one way (DESIGN section 1)."""

import ast
import pathlib
import subprocess
import sys

import placement_rpc
from tests import base

_ROOT = pathlib.Path(placement_rpc.__file__).parent

# What a part may import of the project, beside itself.
_MAY_IMPORT = {
    "exception": set(),
    "context": {"exception", "upgrade"},
    "conf": set(),
    "stages": set(),
    "metrics": {"exception", "stages"},
    "db": {"exception", "stages"},
    "objects": {"exception", "db", "stages"},
    "policies": set(),
    "schemas": set(),
    "policy": {"exception", "policies"},
    "exposure": {"exception", "objects"},
    "node_endpoint": {"context", "exception", "exposure", "objects", "upgrade"},
    "query_endpoint": {"exposure", "notifications", "objects"},
    "manager": {"exception", "exposure", "intakes", "metrics", "node_endpoint", "objects",
                "policy", "query_endpoint", "upgrade"},
    "inprocess": set(),
    "call_threads": {"exception"},
    "bus": {"exception", "context", "objects", "stages", "upgrade"},
    "amqp_reading": set(),
    "call_connection": {"exception", "amqp_reading", "rabbit", "wire"},
    "callers": {"exception", "bus", "call_connection", "call_threads", "intakes", "rabbit",
                "wire"},
    "intakes": {"upgrade"},
    "wire": set(),
    "queue_line": {"amqp_reading", "rabbit"},
    "queue_server": {"exception", "bus", "queue_line", "rabbit", "stages", "wire"},
    "service_state": {"exception", "db"},
    "rabbit": {"amqp_reading"},
    "broker_check": {"exception", "command_queue", "intakes", "notifications", "rabbit"},
    "command_queue": {"exception", "rabbit", "notifications"},
    "casts": {"exception", "bus", "call_threads", "command_queue", "rabbit"},
    "commands": {"exception", "bus", "command_queue", "db", "notifications", "objects", "rabbit"},
    "calls": {"exception", "context", "conf", "bus", "callers", "casts", "objects", "rabbit",
              "upgrade"},
    "node_calls": {"calls"},
    "query_calls": {"calls"},
    "api": {"exception", "calls", "exposure", "node_calls", "objects", "query_calls", "upgrade"},
    "upgrade": {"exception", "db", "objects"},
    "notifications": {"exception", "db", "objects", "rabbit", "upgrade"},
    "http": {"exception", "api", "context", "metrics", "policies", "policy", "schemas"},
    "osc": set(),
    "heartbeat": {"exception", "db"},
    "http_service": {"exception", "api", "db", "heartbeat", "http", "manager", "objects",
                     "upgrade"},
    "service": {"exception", "bus", "commands", "heartbeat", "intakes", "manager", "db",
                "objects", "notifications", "queue_server", "rabbit", "service_state",
                "upgrade"},
    "cmd": {"exception", "broker_check", "conf", "bus", "service", "api", "db", "objects",
            "http", "manager", "notifications", "rabbit", "testing", "upgrade"},
    "testing": {"exception", "conf", "service", "api", "db", "http", "manager"},
}
# What servers of HTTP load: a program rather than a part.
_PROGRAMS = {"http/wsgi.py": {"conf", "http_service"}}


def _imports(path):
    """The parts of the project that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
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
        wrong = []
        for path in _ROOT.rglob("*.py"):
            part = path.relative_to(_ROOT).parts[0].removesuffix(".py")
            if part == "__init__":
                continue
            allowed = _PROGRAMS.get(str(path.relative_to(_ROOT)), _MAY_IMPORT[part]) | {
                part, "__version__"}
            wrong += [f"{path.relative_to(_ROOT)} imports {name}"
                      for name in _imports(path) if name not in allowed]
        self.assertEqual([], wrong)

    def test_sql_is_written_in_db_alone(self):
        wrong = [str(path.relative_to(_ROOT)) for path in _ROOT.rglob("*.py")
                 if "sqlalchemy" in path.read_text()
                 and path.relative_to(_ROOT).parts[0] not in ("db", "cmd", "testing")]
        self.assertEqual([], wrong)


class ImportTest(base.TestCase):

    def test_what_programs_begin_with_can_be_the_first_to_be_imported(self):
        """A part of a package that somebody else imported is there, and then one day is not."""
        names = [f"placement_rpc.{name}" for name in (
            "api", "notifications.listener", "testing.fixtures", "testing.servers",
            "cmd.conductor", "cmd.main", "cmd.manage")]
        program = (
            "import importlib, os, sys, warnings\n"
            "warnings.simplefilter('ignore')\n"
            "for name in sys.argv[1:]:\n"
            "    if not os.fork():\n"
            "        importlib.import_module(name)\n"
            "        os._exit(0)\n"
            "    if os.wait()[1]:\n"
            "        print(name)\n")
        done = subprocess.run([sys.executable, "-c", program, *names], check=True,
                              capture_output=True, text=True)
        self.assertEqual("", done.stdout, done.stderr)
