# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage``."""

import argparse

import placement_rpc
from placement_rpc.cmd import arguments, config_sources
from placement_rpc.cmd.parsers import (
    audit,
    audit_log,
    broker,
    db,
    dead_letters,
    index,
    nodes,
    outbox,
    placement,
    upgrade,
)

# Module, name and help of each group; the module's ``add_commands`` adds what the group has.
_GROUPS = (
    (db, "db", "the database schema"),
    (audit, "audit",
     "compare all allocations with the servers that nova knows, and correct them"),
    (audit_log, "audit-log",
     "write who changed what into a file, as lines of JSON, until it is stopped"),
    (nodes, "compute-nodes", "nova's compute nodes"),
    (outbox, "outbox", "stored events and their publication"),
    (dead_letters, "dead-letters", "calls, casts and events that could not be handled"),
    (broker, "broker", "queues, stream and exchange"),
    (index, "index", "the candidate indexes"),
    (upgrade, "upgrade", "releases side by side"),
    (placement, "placement", "move over from OpenStack Placement, and back"),
)


def parser():
    """Return the parser of ``placement-rpc-manage``."""
    whole = argparse.ArgumentParser(
        prog="placement-rpc-manage",
        description="Administer the database and the broker of placement_rpc.")
    config_sources.add_arguments(whole)
    whole.add_argument("--database", type=arguments.url, metavar="URL",
                       help="SQLAlchemy URL; overrides [database] connection")
    whole.add_argument("--transport-url", type=arguments.url, metavar="URL",
                       help="the bus; overrides transport_url")
    config_sources.add_state_dir(whole)
    whole.add_argument("--debug", action="store_true",
                       help="show the log, and the traceback of an error")
    whole.add_argument("--version", action="version", version=placement_rpc.__version__)
    # A command that needs no database overrides the first, and is called without one; one that
    # creates it overrides the second. A command whose exit code 1 is an answer overrides the
    # third, the exit code of an error; one that goes on while a server is away overrides the
    # fourth, so that its log says so.
    whole.set_defaults(needs_database=True, creates_database=False, failure=1, is_quiet=True)
    groups = whole.add_subparsers(dest="group", required=True, metavar="GROUP")
    for module, name, text in _GROUPS:
        module.add_commands(groups.add_parser(
            name, help=text, description=f"{text[:1].upper()}{text[1:]}."))
    return whole
