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
        "contract", help="drop the parts of the schema that no service needs any more",
        description="Drop the parts of the schema that no service needs any more. Refused, with "
                    "exit code 1, while a live service or a row needs them.")
    command.set_defaults(run=_contract)
    command = commands.add_parser(
        "online_data_migrations", help="migrate data while the service runs",
        description="Migrate data while the service runs, in batches. Exits with 0 if everything "
                    "is migrated; with 1 if --max-count is given, some rows were migrated and "
                    "there may be more; with 2 if some rows cannot be migrated, or none can "
                    "because the gate is closed; with 127 for an invalid number.")
    command.add_argument("--max-count", metavar="N",
                         help="maximum number of rows to migrate (default: all)")
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
    print(f"The schema is contracted to {after}" + ("; it already was" if before else ""))
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

            def report(progress, advance=advance):
                nonlocal before
                advance(progress.found - before)
                before = progress.found

            progress = migrate(database, settings, limit, report)
        for label, error in progress.refused:
            print(f"{label}: {error}", file=sys.stderr)
        rows.append({"migration": name, "found": progress.found, "done": progress.done})
        refused += len(progress.refused)
        waiting += 0 if settings.migrates else progress.found
        done += progress.done
    output.show(rows, ["migration", "found", "done"], options.format)
    if waiting:
        _report_closed_gate(inventory_gate, conf)
    if limit is not None and done:
        return 1
    return 2 if refused or waiting else 0


def _number(text):
    """Return the value of --max-count; None if it is not given, 0 if it is not a number."""
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() else 0


def _report_closed_gate(inventory_gate, conf):
    holders = [gate.name(row) for row in inventory_gate.holders()]
    reason = ", ".join(holders) if conf.compute_nodes.inventory_migration == gate.AUTO else (
        "[compute_nodes] inventory_migration = never")
    print(f"placement-rpc-manage: nothing is migrated while the gate is closed: {reason}",
          file=sys.stderr)
