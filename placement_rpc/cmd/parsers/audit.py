# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage audit``."""

import argparse

from placement_rpc.audit.findings import CORRECTIONS, KINDS
from placement_rpc.cmd import arguments

_EXIT_CODES = (
    "Exit code: 0 if nothing is wrong, or all that was wrong is corrected; 1 if something is "
    "wrong; 2 if the audit could not be made.")


def add_commands(command):
    """Add the arguments of the command, which is the only one of its group.

    :param command: the parser of the group
    """
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.description = (
        "Compare all allocations with the servers that nova knows. Findings:\n\n"
        + "\n".join(f"  {kind:10} {what}" for kind, what in KINDS.items())
        + "\n\nNothing is changed without --fix, which makes the corrections that are listed:\n\n"
        + "\n".join(f"  {name:10} {what}" for name, what in CORRECTIONS.items())
        + "\n\nLists are JSON, CSV with column names, or plain lines, for example of:\n\n"
        "  openstack server list --all-projects --long --limit -1 -f json\n"
        "  openstack --os-compute-api-version 2.59 server migration list -f json\n"
        "  openstack hypervisor list -f json\n\n" + _EXIT_CODES)
    command.add_argument(
        "--servers", action="append", required=True, metavar="FILE",
        help="the servers that nova knows, - for standard input; a plain line is a uuid and the "
             "host if it is known. Repeat it for further cells, or for other services' consumers")
    command.add_argument(
        "--migrations", action="append", metavar="FILE",
        help="the migrations that nova knows, with their UUID, so that what a move has left can "
             "be told from what it still needs; can be repeated")
    command.add_argument(
        "--services", action="append", metavar="FILE",
        help="the hypervisors or the compute services that nova knows; providers without one are "
             "found only if it is given; can be repeated")
    command.add_argument(
        "--margin", type=_seconds, default=3600, metavar="SECONDS",
        help="do not judge what changed later than so long before the list of servers was "
             "written, or before now for standard input (default: %(default)s)")
    command.add_argument("--only", action="append", choices=list(KINDS), metavar="KIND",
                         help=f"only findings of this kind: {', '.join(KINDS)}; can be repeated")
    arguments.add_format(command, arguments.DOCUMENT)
    command.add_argument(
        "--fix", action="store_true",
        help="make the corrections, after they were listed and confirmed. A consumer or a "
             "provider that has changed since it was read is left as it is. Every event of a "
             "correction has the reason")
    command.add_argument("--yes", action="store_true", help="with --fix: do not ask")
    command.add_argument(
        "--most", type=_percent, default=10, metavar="PERCENT",
        help="with --fix: refuse to correct more than this share of all consumers or providers, "
             "since the list of servers may be incomplete (default: %(default)s)")
    command.set_defaults(run="manage_audit.audit", failure=2)


def _seconds(text):
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("it is below 0")
    return value


def _percent(text):
    value = float(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError("it is not between 0 and 100")
    return value
