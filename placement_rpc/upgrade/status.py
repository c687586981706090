# SPDX-License-Identifier: Apache-2.0
"""The status of an upgrade: releases at work, what a newer pin would break, what is left to do."""

import collections
import dataclasses
import json

from placement_rpc.db import schema_version
from placement_rpc.db.queries import bulk, compute_nodes, events, services, upgrade
from placement_rpc.upgrade import gate
from placement_rpc.versions import releases

_MAX_EVENTS = 20_000
#: The contract whose calls every live service must know, and the one before.
EVERYWHERE, _WITHOUT = "1.3", "1.2"


@dataclasses.dataclass(frozen=True)
class Status:
    """The status of an upgrade.

    :param services: list of dicts of binary, host, worker, version, rpc_version, release, pin,
        oldest_caller, last_seen_seconds (float), alive
    :param schema: dict of expand (str, the revision of the store), needed (str, that of this
        release), contracted (bool)
    :param gate: dict of mode, open, held_by (list of str)
    :param compute_nodes: dict of nodes, migrated, without_uuid
    :param waiting_payloads: dict of payload and version, like ``AllocationPayload 1.0``, to the
        number of unpublished events that have it
    :param bumps: dict of each release that is newer than the oldest live service to a list of
        str, the services that would not understand it
    :param left_behind: dict of each release that is older than this one to a list of str, the
        services that a client of that release called recently
    :param calls: dict of contract (the version that introduced the calls that wait for all live
        services), open, held_by (list of str)
    :param way_back: dict of release (the oldest one whose services can run on the store), stored
        (list of str: what the store holds that the release before does not know)
    """

    services: list
    schema: dict
    gate: dict
    compute_nodes: dict
    waiting_payloads: dict
    bumps: dict
    left_behind: dict
    calls: dict
    way_back: dict


def status(database, conf):
    """Return the :class:`Status` of the upgrade.

    :raises StoreUnavailable: if the database cannot be reached
    """
    inventory_gate = gate.InventoryGate(conf, database)
    held_by = gate.LiveReleases(conf, database).holders(EVERYWHERE)
    with database.reader() as tx:
        rows = services.everyone(tx)
        alive = gate.alive(tx, conf.conductor.service_down_time)
        counts = compute_nodes.counts(tx)
        waiting = events.waiting_payloads(tx, _MAX_EVENTS)
        stored = upgrade.stored_since_1_3(tx)
    return Status(
        services=[_service(row, row in alive) for row in rows],
        schema={"expand": schema_version.current(database), "needed": schema_version.newest(),
                "contracted": schema_version.is_contracted(database)},
        gate={"mode": conf.compute_nodes.inventory_migration, "open": inventory_gate.is_open(),
              "held_by": [gate.name(row) for row in inventory_gate.holders()]},
        compute_nodes={"nodes": counts.nodes, "migrated": counts.nodes - counts.unmigrated,
                       "without_uuid": counts.without_uuid},
        waiting_payloads=_versions(waiting), bumps=_bumps(alive),
        left_behind=_left_behind(alive),
        calls={"contract": EVERYWHERE, "open": not held_by, "held_by": list(map(
            gate.name, held_by))},
        way_back=_way_back(stored))


def _way_back(stored):
    """Return the oldest release whose services can run on the store.

    Releases before 2026.2 cannot use the schema.
    """
    of_contract = {each.contract: each for each in releases.RELEASES}
    oldest = of_contract[EVERYWHERE if stored else _WITHOUT]
    return {"release": oldest.name, "stored": stored}


def _service(row, alive):
    release = releases.of_contract(row.rpc_version)
    return {
        "binary": row.binary, "host": row.host, "worker": row.worker, "version": row.version,
        "rpc_version": row.rpc_version, "release": release.name if release else None,
        "pin": row.pin, "oldest_caller": row.oldest_caller, "alive": alive,
        "last_seen_seconds": round((bulk.now() - row.last_seen_at).total_seconds(), 1)}


def _versions(payloads):
    found = collections.Counter()
    for text in payloads:
        payload = json.loads(text)
        found[f"{payload['placement_object.name']} {payload['placement_object.version']}"] += 1
    return dict(sorted(found.items()))


def _bumps(alive):
    def release(row):
        return releases.of_contract(row.rpc_version)

    return {each.name: holders for each in releases.RELEASES
            if (holders := [f"{gate.name(row)}, at {row.rpc_version}" for row in alive
                            if release(row) is None or release(row).number < each.number])}


def _left_behind(alive):
    return {each.name: callers for each in releases.RELEASES[:-1]
            if (callers := [gate.name(row) for row in alive if row.oldest_caller == each.name])}


def outdated(waiting_payloads):
    """Return the part of ``waiting_payloads`` that is at an older version than this release's.

    :param waiting_payloads: as in :class:`Status`
    """
    return {key: number for key, number in waiting_payloads.items()
            if releases.CURRENT.payloads.get(key.split(" ")[0], key.split(" ")[1])
            != key.split(" ")[1]}
