# SPDX-License-Identifier: Apache-2.0
"""The events in the outbox of a service."""

import json

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.objects import catalog


class StoredEvents:
    """Reads the events of :class:`tests.base.ContractTest`'s service."""

    def events(self):
        """Return the events written since the last call, as (type, payload data)."""
        with self.service.database.reader() as tx:
            rows = tx.execute(sa.select(models.events).where(
                models.events.c.id > getattr(self, "seen", 0)).order_by(
                    models.events.c.id)).all()
        if rows:
            self.seen = rows[-1].id
        found = []
        for row in rows:
            payload = json.loads(row.payload)
            self.assertEqual(catalog.EVENTS[row.event_type].payload.__name__,
                             payload["placement_object.name"])
            data = payload["placement_object.data"]
            self.assertEqual(row.event_id, data["event_id"])
            found.append((row.event_type, data))
        return found

    def types(self):
        return [event_type for event_type, _ in self.events()]
