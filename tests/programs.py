# SPDX-License-Identifier: Apache-2.0
"""Run the project's programs in this process, which takes a tenth of the time of a new one."""

import contextlib
import io
from typing import NamedTuple


class Done(NamedTuple):
    """The exit code of a program and what it printed."""

    code: int
    stdout: str
    stderr: str


def run(program, *arguments):
    """Run the ``main`` of a module of :mod:`placement_rpc.cmd`; return :class:`Done`.

    An error that the program does not handle is raised.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = program.main(list(arguments))
    return Done(code, out.getvalue(), err.getvalue())
