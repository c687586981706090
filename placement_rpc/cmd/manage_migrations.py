# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage db contract`` and ``online_data_migrations``."""

import sys

from placement_rpc import exception
from placement_rpc.cmd import output
from placement_rpc.db import migration
from placement_rpc.upgrade import contract_check, gate, online


def add_commands(commands):
    """Add the commands to the group ``db``.

    :param commands: what ``add_subparsers`` of the group returned
    """
    command = commands.add_parser(
        "contract", help="take away from the schema what no service needs any more",
        description="Take away from the schema what no service needs any more. Refused, with "
                    "exit code 1, while a service or a row does.")
    command.set_defaults(run=_contract)
    command = commands.add_parser(
        "online_data_migrations", help="migrate data while the service runs",
        description="Migrate data while the service runs, in batches. Exits 0 when nothing is "
                    "left to be done; 1 when --max-count was given and some was done, and there "
                    "may be more; 2 when some could not be done, or none can be while the gate "
                    "is closed; 127 for an invalid number.")
    command.add_argument("--max-count", metavar="N",
                         help="how many rows to migrate at the most (default: all)")
    command.add_argument("--format", choices=("auto", "table", "json"), default="table",
                         help="auto: a table on a terminal, JSON elsewhere (default: table)")
    command.set_defaults(run=_online)


def _contract(database, _options, conf):
    migration.check(database)
    found = contract_check.to_contraction(database, conf)
    for each in found:
        print(f"placement-rpc-manage: {each}", file=sys.stderr)
    if found:
        return 1
    before = migration.is_contracted(database)
    after = migration.contract(database)
    print(f"The schema is contracted to {after}" + ("; it was already" if before else ""))
    return 0


def _online(database, options, conf):
    limit = _number(options.max_count)
    if limit == 0:
        print("placement-rpc-manage: --max-count must be a number above 0", file=sys.stderr)
        return 127
    try:
        migration.check(database)
    except exception.SchemaOutdated as error:
        print(f"placement-rpc-manage: {error}", file=sys.stderr)
        return 2
    inventory_gate = gate.InventoryGate(conf, database)
    settings = inventory_gate.settings
    rows, refused, waiting, done = [], 0, 0, 0
    for name, migrate in online.MIGRATIONS.items():
        with output.counter(name) as advance:
            before = 0

            def told(progress, advance=advance):
                nonlocal before
                advance(progress.found - before)
                before = progress.found

            progress = migrate(database, settings, limit, told)
        for label, error in progress.refused:
            print(f"{label}: {error}", file=sys.stderr)
        rows.append({"migration": name, "found": progress.found, "done": progress.done})
        refused += len(progress.refused)
        waiting += 0 if settings.migrates else progress.found
        done += progress.done
    output.show(rows, ["migration", "found", "done"], options.format)
    if waiting:
        _say_closed(inventory_gate, conf)
    if limit is not None and done:
        return 1
    return 2 if refused or waiting else 0


def _number(text):
    """:returns: int; None where none was given, 0 for one that is none"""
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() else 0


def _say_closed(inventory_gate, conf):
    holders = [gate.name(row) for row in inventory_gate.holders()]
    reason = ", ".join(holders) if conf.compute_nodes.inventory_migration == gate.AUTO else (
        "[compute_nodes] inventory_migration = never")
    print(f"placement-rpc-manage: nothing is migrated while the gate is closed: {reason}",
          file=sys.stderr)
