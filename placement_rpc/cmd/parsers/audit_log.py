# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage audit-log``."""

from placement_rpc.cmd import arguments


def add_commands(command):
    """Add the arguments of the command, which is the only one of its group.

    :param command: the parser of the group
    """
    command.description = (
        "Write who changed what into a file, as lines of JSON, until it is stopped. The queue "
        "keeps events while this program does not run. FILE can be rotated by renaming it; "
        "FILE.position has the position of the last event.")
    command.add_argument("--file", required=True, metavar="FILE", help="append to this file")
    command.add_argument("--queue", default="placement_audit_log", metavar="NAME",
                         help="the durable queue to read from (default: %(default)s)")
    command.add_argument("--idle", type=arguments.seconds, metavar="SECONDS",
                         help="exit after this long without an event")
    command.set_defaults(run="manage_audit_log.run", needs_database=False, is_quiet=False)
