# SPDX-License-Identifier: Apache-2.0
"""The entry points of the programs that need the extra ``service``.

A client's installation has these programs too, without what they import: they then name the extra
instead of ending in a traceback.
"""

import importlib
import sys


def _run(name: str) -> int:
    try:
        module = importlib.import_module(f"placement_rpc.cmd.{name}")
    except ModuleNotFoundError as error:
        print(f"placement-rpc-{name}: {error.name} is not installed; this program needs the extra "
              "'service': pip install 'placement-rpc[service]'", file=sys.stderr)
        return 1
    return module.main()


def conductor() -> int:
    """Run ``placement-rpc-conductor``."""
    return _run("conductor")


def manage() -> int:
    """Run ``placement-rpc-manage``."""
    return _run("manage")


def status() -> int:
    """Run ``placement-rpc-status``."""
    return _run("status")
