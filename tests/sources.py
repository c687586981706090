# SPDX-License-Identifier: Apache-2.0
"""Source files, for tests that read them."""

import ast
import gc


def parsed(path):
    """Return the syntax tree of a Python file: :class:`ast.Module`.

    :param path: :class:`pathlib.Path`
    """
    text = path.read_bytes()
    # If the collector runs meanwhile, Python 3.11 may raise a SystemError: "AST constructor
    # recursion depth mismatch".
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()
