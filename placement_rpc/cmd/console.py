# SPDX-License-Identifier: Apache-2.0
"""The console on which tables are drawn."""

import rich.console


class Console(rich.console.Console):
    """A console of rich that reports a closed pipe as any stream does.

    rich would end the program with exit code 1.
    """

    def on_broken_pipe(self):
        """Raise the error that rich has caught."""
        raise BrokenPipeError
