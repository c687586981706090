# SPDX-License-Identifier: Apache-2.0
"""Put resource providers into aggregates."""

from placement_rpc.accounting.outbox import Outbox
from placement_rpc.accounting.providers import lock, raise_generation
from placement_rpc.db import api as db
from placement_rpc.db.queries import aggregates as queries
from placement_rpc.objects.aggregate import ProviderAggregates
from placement_rpc.objects.payloads import ProviderAggregatesPayload


def replace(tx: db.Connection, outbox: Outbox, wanted: ProviderAggregates) -> ProviderAggregates:
    """Put a provider into these aggregates and no others; the same ones change nothing.

    :param wanted: with the ``generation`` that the caller read, if it checks it
    :raises ProviderNotFound: if there is no such provider
    :raises ConcurrentUpdate: if the generation is not the current one
    """
    row = lock(tx, wanted.provider_uuid, wanted.value("generation"))
    after, current = set(wanted.aggregates), queries.of_provider(tx, row.id)
    generation = row.generation
    if after != set(current):
        gone, added = set(current) - after, after - set(current)
        if gone:
            queries.unlink(tx, row.id, [current[uuid] for uuid in gone])
        if added:
            queries.link(tx, row.id, queries.ids(tx, added).values())
        generation = raise_generation(tx, row)
        for kind, uuids in (("disassociate", gone), ("associate", added)):
            if uuids:
                outbox.add(f"resource_provider.aggregate.{kind}", ProviderAggregatesPayload(
                    provider_uuid=row.uuid, generation=generation,
                    previous_generation=row.generation, aggregates=sorted(uuids)))
    return ProviderAggregates(
        provider_uuid=row.uuid, generation=generation, aggregates=sorted(after))
