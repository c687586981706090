# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-conductor``: the worker processes that answer calls.

What it needs is imported when its arguments are parsed: printing help loads none of it.
"""

import sys

from placement_rpc.cmd import errors, service_parser
from placement_rpc.service import private_files

PROGRAM = "placement-rpc-conductor"


@errors.one_line_errors(PROGRAM)
@private_files.owner_only()
def main(args=None):
    options = service_parser.conductor().parse_args(args)
    return errors.service_module("conductor_process").run(options, args)


if __name__ == "__main__":
    sys.exit(main())
