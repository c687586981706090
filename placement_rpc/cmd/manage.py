# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage``: administration of the database and the broker.

The module of a command is imported when it runs: printing help loads none of them.
"""

import sys

from placement_rpc.cmd import errors, manage_parser
from placement_rpc.service import private_files


@errors.one_line_errors("placement-rpc-manage")
@private_files.owner_only()
def main(args=None):
    options = manage_parser.parser().parse_args(args)
    return errors.service_module("manage_command").run(options, args)


if __name__ == "__main__":
    sys.exit(main())
