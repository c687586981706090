# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage db contract`` and ``online_data_migrations``."""

import sys

from placement_rpc import exception
from placement_rpc.cmd import manage_db, output
from placement_rpc.db import migration, schema_version
from placement_rpc.upgrade import contraction_check, gate, online


def contract(database, _options, conf):
    schema_version.check(database)
    found = contraction_check.obstacles(database, conf)
    for each in found:
        print(f"placement-rpc-manage: {each}", file=sys.stderr)
    if found:
        return 1
    before = schema_version.is_contracted(database)
    with manage_db.applying("Contracting the schema", database, migration.CONTRACT) as report:
        after = migration.contract(database, report)
    print(f"The schema is contracted to {after}" + ("; it already was" if before else ""))
    return 0


def migrate_online(database, options, conf):
    limit = _number(options.max_count)
    if limit == 0:
        print("placement-rpc-manage: --max-count must be a number above 0", file=sys.stderr)
        return 127
    try:
        schema_version.check(database)
    except exception.SchemaOutdated as error:
        print(f"placement-rpc-manage: {error}", file=sys.stderr)
        return 2
    inventory_gate = gate.InventoryGate(conf, database)
    settings = inventory_gate.settings
    rows, refused, waiting, done = [], 0, 0, 0
    for name, migrate in online.MIGRATIONS.items():
        progress = _migrated(name, lambda report, migrate=migrate: migrate(
            database, settings, limit, report))
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


def _migrated(name, migrate):
    """Run a migration and show its progress; return what it did."""
    seen = 0
    with output.interruptible(
            "placement-rpc-manage", lambda: f"{name} has looked at {seen} rows",
            "run it again to go on"), output.progress(name) as advance:

        def report(progress):
            nonlocal seen
            advance(progress.found - seen)
            seen = progress.found

        return migrate(report)


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
