# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-status upgrade check``: whether the next step of an upgrade can be taken.

What it needs is imported when its arguments are parsed: printing help loads none of it.
"""

import sys

from placement_rpc.cmd import errors, service_parser
from placement_rpc.service import private_files

PROGRAM = "placement-rpc-status"


@errors.one_line_errors(PROGRAM, failure=255)
@private_files.owner_only()
def main(args=None):
    options = service_parser.status().parse_args(args)
    return errors.service_module("status_checks").run(options, args)


if __name__ == "__main__":
    sys.exit(main())
