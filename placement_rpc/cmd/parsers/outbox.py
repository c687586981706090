# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage outbox``."""

from placement_rpc.cmd import arguments


def add_commands(group):
    """Add the commands of the group.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "show the positions of stored and published events, and the relay's lag"
    command = commands.add_parser("status", help=text, description=text.capitalize())
    arguments.add_format(command)
    command.set_defaults(run="manage_outbox.status")
    text = "delete old published events"
    command = commands.add_parser("prune", help=text, description=text.capitalize())
    command.add_argument("--older-than", type=arguments.age, required=True, metavar="SECONDS",
                         help="delete what is older than this")
    command.set_defaults(run="manage_outbox.prune")
    text = "publish events again, from a position or a time on, or those of a provider"
    command = commands.add_parser("replay", help=text, description=(
        text.capitalize() + ". With --provider, this process publishes them at once; otherwise "
                            "the relay does."))
    start = command.add_mutually_exclusive_group()
    start.add_argument("--position", type=int, metavar="N", help="begin at this position")
    start.add_argument("--since", type=_time, metavar="TIME",
                       help="begin at this time, ISO 8601; local time without a zone")
    command.add_argument("--provider", type=arguments.given_uuid, metavar="UUID",
                         help="only the events of this provider")
    command.set_defaults(run="manage_outbox.replay")
    _add_reconcile(commands)
    text = "begin a new epoch of positions"
    command = commands.add_parser("begin-epoch", help=text, description=(
        text.capitalize() + ", whose events listeners read as others than those that they know. "
        "Events that wait are published in the new epoch. After a restore from a backup, "
        "'outbox reconcile' does so if it is necessary."))
    command.set_defaults(run="manage_outbox.begin_epoch")
    text = "take a snapshot of all allocations now"
    command = commands.add_parser("snapshot", help=text, description=text.capitalize())
    command.set_defaults(run="manage_outbox.take_snapshot")


def _time(text):
    """Return a datetime in UTC without a zone, as the tables store times."""
    return arguments.moment(text).replace(tzinfo=None)


def _add_reconcile(commands):
    """Add the command to the parser.

    :param commands: what ``add_subparsers`` of the group returned
    """
    text = "go on after the store has lost events that were published"
    command = commands.add_parser("reconcile", help=text, description=(
        text.capitalize() + ", since it was restored from a backup, or since a standby took the "
        "place of its server. Listeners are told by the event outbox.reconciled what they have to "
        "take back; positions continue after those of the stream, in a new epoch. It changes "
        "nothing if nothing was lost."))
    command.add_argument("--dry-run", action="store_true", help="show what was lost only")
    arguments.add_format(command)
    command.set_defaults(run="outbox_reconcile.reconcile")
