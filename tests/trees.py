# SPDX-License-Identifier: Apache-2.0
"""What holds for the trees of a store and for its events, after any changes."""

import json

from placement_rpc.db import models


def check(case, database):
    """Check that roots follow from parents, and that the events tell how each provider came there.

    :param case: the test
    :param database: :class:`placement_rpc.db.api.Database`
    """
    with database.reader() as tx:
        rows = tx.execute(models.resource_providers.select()).all()
        events = tx.execute(models.events.select().order_by(models.events.c.id)).all()
    by_id = {row.id: row for row in rows}
    for row in rows:
        top, passed = row, set()
        while top.parent_provider_id is not None:
            case.assertNotIn(top.id, passed, "a loop")
            passed.add(top.id)
            top = by_id[top.parent_provider_id]
        case.assertEqual(top.id, row.root_provider_id or row.id, f"the root of {row.uuid}")
    place, steps = {}, {}
    for row in events:
        data = json.loads(row.payload)["placement_object.data"]
        for uuid, step in _steps(data):
            # Events of one transaction share a step.
            if step != steps.get(uuid):
                case.assertEqual(steps.get(uuid, (None, None))[1], step[0],
                                 f"{row.event_type} of {uuid}")
            steps[uuid] = step
        if row.event_type.startswith("resource_provider.") and "parent_provider_uuid" in data:
            uuid = data["provider_uuid"]
            case.assertEqual(place.get(uuid, (None, None)), (
                data["previous_parent_provider_uuid"], data["previous_root_provider_uuid"]))
            place[uuid] = data["parent_provider_uuid"], data["root_provider_uuid"]
            if row.event_type == "resource_provider.delete":
                del place[uuid], steps[uuid]
    uuids = {row.id: row.uuid for row in rows}
    case.assertEqual({
        row.uuid: (uuids.get(row.parent_provider_id), uuids[row.root_provider_id or row.id])
        for row in rows}, place)
    case.assertEqual({row.uuid: row.generation for row in rows},
                     {uuid: after for uuid, (_before, after) in steps.items()})


def _steps(data):
    """Yield uuid and generations, before and after, of each provider that an event changes."""
    if "previous_generation" in data:
        yield data["provider_uuid"], (data["previous_generation"], data["generation"])
    for each in data.get("providers") or ():
        each = each["placement_object.data"]
        yield each["provider_uuid"], (each["previous_generation"], each["generation"])
