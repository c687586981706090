# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage dead-letters``."""

from placement_rpc.cmd import arguments


def add_commands(group):
    """Add the commands of the group.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "list dead letters, oldest first"
    command = commands.add_parser("list", help=text, description=text.capitalize())
    command.add_argument("--queue", help="only those from this queue")
    arguments.add_format(command)
    command.set_defaults(run="manage_dead_letters.list_letters", needs_database=False)
    text = "show a dead letter with its body"
    command = commands.add_parser("show", help=text, description=text.capitalize())
    command.add_argument("ids", nargs=1, metavar="ID", help="its id, as 'list' shows it")
    command.set_defaults(run="manage_dead_letters.show", needs_database=False)
    for name, text in (
            ("replay", "send dead letters to their queues again"),
            ("discard", "delete dead letters")):
        command = commands.add_parser(name, help=text, description=text.capitalize())
        command.add_argument("ids", nargs="*", metavar="ID", help="their ids")
        command.add_argument("--all", action="store_true", help="all of them")
        command.add_argument("--queue", help="only those from this queue; without IDs, all of "
                                             "them")
        command.set_defaults(run=f"manage_dead_letters.{name}", needs_database=False)
