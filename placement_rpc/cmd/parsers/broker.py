# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage broker``."""

from placement_rpc.cmd import arguments


def add_commands(group):
    """Add the commands of the group.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = ("list the nodes and the queues, with the remedy for nodes that cannot be reached, "
            "whose certificates are refused or that accept no messages, and for queues that are "
            "unbounded, unread, not durable, or on too few nodes")
    command = commands.add_parser(
        "check", help=text, description=text.capitalize() + ". Exits with 1 if there are any. "
        "Notes, such as that there is one node only, do not change that.")
    command.add_argument(
        "--management-url", metavar="URL",
        help="RabbitMQ's management interface; several are separated by commas, and tried in turn "
             "(default: [queues] management_url)")
    arguments.add_format(command)
    command.set_defaults(run="manage_broker.check", needs_database=False)
