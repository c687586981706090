# SPDX-License-Identifier: Apache-2.0
"""Runs scripts: JSON lines on its input say which, JSON lines on its output what happened.

A line in is a dict of ``module``, ``name``, ``url``, the address of a server, and ``seed``, a
text that names are made from. A line out is a dict of ``steps``, or of ``failed``, a traceback.
"""

import importlib
import json
import os
import pathlib
import sys
import traceback


def main():
    # The protocol is on the first output; whatever a client prints belongs with its log.
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    # The interpreter is isolated, so that it does not look in the directory of this file.
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
    # Before all else of nova, since it chooses between threads and greenlets.
    importlib.import_module("nova.cmd.manage")
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line))), file=lines, flush=True)


def _run(asked):
    script = importlib.import_module("clients.script")
    running = script.Script(asked["url"], asked["seed"])
    try:
        with running:
            getattr(importlib.import_module(f"clients.{asked['module']}"), asked["name"])(running)
    except Exception:
        return {"failed": traceback.format_exc(), "steps": running.transcript()}
    return {"steps": running.transcript()}


if __name__ == "__main__":
    main()
