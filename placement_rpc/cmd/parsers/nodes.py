# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage compute-nodes``."""

from placement_rpc.cmd import arguments


def add_commands(group):
    """Add the commands of the group.

    :param group: the parser of the group
    """
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    command = commands.add_parser(
        "import", help="import a deployment's compute nodes",
        description="Import a deployment's compute nodes as nova stores them. They become "
                    "providers by 'db online_data_migrations', or when they are first read. "
                    "Existing nodes are not changed, and nodes that nova has deleted are left "
                    "out. A node that could not be migrated is refused, and so is one whose uuid "
                    "or name is that of another. Exits with 0 if all nodes are imported, exist or "
                    "are left out, and with 1 if some are refused; each of these is reported with "
                    "its line and its reason.")
    source = command.add_mutually_exclusive_group()
    source.add_argument("file", nargs="?", metavar="FILE",
                        help="JSON lines, each an object as nova sends it or a mapping of columns "
                             "(default: -, standard input)")
    source.add_argument("--from-database", metavar="URL",
                        help="SQLAlchemy URL of a nova cell database, whose tables compute_nodes "
                             "and pci_devices are read")
    command.add_argument("--replace", action="store_true",
                         help="give the values of the file to nodes that are stored and not "
                              "migrated yet, found by their uuid or name")
    arguments.add_format(command)
    command.set_defaults(run="manage_nodes.import_nodes")
    text = "list the stored nodes, with the reason for which one cannot be migrated"
    command = commands.add_parser("list", help=text, description=text.capitalize())
    command.add_argument("--blocked", action="store_true",
                         help="only those that cannot be migrated")
    command.add_argument("--host", help="only those of this host")
    arguments.add_format(command)
    command.set_defaults(run="manage_nodes.list_nodes")
    text = "show a stored node with all of its columns"
    command = commands.add_parser("show", help=text, description=text.capitalize())
    command.add_argument("node", metavar="NODE", help="id, uuid or hypervisor_hostname")
    arguments.add_format(command)
    command.set_defaults(run="manage_nodes.show")
    text = "delete stored nodes that are not migrated"
    command = commands.add_parser(
        "delete", help=text, description=text.capitalize() + ". A migrated node is deleted by its "
                                                             "compute service.")
    command.add_argument("nodes", nargs="+", metavar="NODE",
                         help="id, uuid or hypervisor_hostname")
    command.set_defaults(run="manage_nodes.delete")
