# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage db``."""

from placement_rpc.cmd import arguments


def add_commands(group):
    """Add the commands of the group.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
            ("sync", "bring the schema and the standard resource classes up to date"),
            ("version", "print the version of the schema; exit with 1 if it is not the "
                        "one that this release needs")):
        commands.add_parser(name, help=text, description=text.capitalize()).set_defaults(
            run=f"manage_db.{name}", creates_database=name == "sync")
    _add_migrations(commands)


def _add_migrations(commands):
    """Add the commands to the group ``db``.

    :param commands: what ``add_subparsers`` of the group returned
    """
    command = commands.add_parser(
        "contract", help="drop the parts of the schema that no service needs any more",
        description="Drop the parts of the schema that no service needs any more. Refused, with "
                    "exit code 1, while a live service or a row needs them.")
    command.set_defaults(run="manage_migrations.contract")
    command = commands.add_parser(
        "online_data_migrations", help="migrate data while the service runs",
        description="Migrate data while the service runs, in batches. Exits with 0 if everything "
                    "is migrated; with 1 if --max-count is given, some rows were migrated and "
                    "there may be more; with 2 if some rows cannot be migrated, or none can "
                    "because the gate is closed; with 127 for an invalid number.")
    command.add_argument("--max-count", metavar="N",
                         help="maximum number of rows to migrate (default: all)")
    arguments.add_format(command)
    command.set_defaults(run="manage_migrations.migrate_online")
