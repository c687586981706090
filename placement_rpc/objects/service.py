# SPDX-License-Identifier: Apache-2.0
"""The processes of the service, as their heartbeats tell."""

import datetime

from placement_rpc.db.queries import bulk
from placement_rpc.db.queries import services as queries
from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Service(base.PlacementObject):
    """One process of the service. Times are UTC in ISO 8601.

    ``pin`` is the release that its operator has it keep to, or ``auto``; ``oldest_caller`` the
    oldest release of those who called it lately. None of either where it is too old to tell.
    """

    # Version 1.0: Initial version
    # Version 1.1: Added pin and oldest_caller
    VERSION = "1.1"

    fields = {
        "binary": fields.field(fields.Text(64)),
        "host": fields.field(fields.Text(255)),
        "worker": fields.field(fields.WholeNumber()),
        "version": fields.field(fields.Text(32)),
        "rpc_version": fields.field(fields.Text(16)),
        "started_at": fields.field(fields.Text(32)),
        "last_seen_at": fields.field(fields.Text(32)),
        "alive": fields.BooleanField(),
        "pin": fields.field(fields.Text(32), nullable=True),
        "oldest_caller": fields.field(fields.Text(32), nullable=True),
    }

    added = {"pin": "1.1", "oldest_caller": "1.1"}


@base.PlacementObjectRegistry.register
class ServiceList(base.PlacementObjectList):
    """All processes that ever reported and did not end in good order."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("Service")}

    @classmethod
    def get(cls, context, down_time):
        """:param down_time: int, seconds without a heartbeat after which one counts as down"""
        with context.database.reader() as tx:
            rows = queries.everyone(tx)
        oldest = bulk.now() - datetime.timedelta(seconds=down_time)
        return cls(objects=[
            Service(binary=row.binary, host=row.host, worker=row.worker, version=row.version,
                    rpc_version=row.rpc_version, started_at=row.started_at.isoformat(),
                    last_seen_at=row.last_seen_at.isoformat(), alive=row.last_seen_at >= oldest,
                    pin=row.pin, oldest_caller=row.oldest_caller)
            for row in rows])
