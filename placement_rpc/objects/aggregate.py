# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider: which consumers of which other providers can use it."""

from placement_rpc.db.queries import aggregates as queries
from placement_rpc.objects import base, fields
from placement_rpc.objects.payloads import ProviderAggregatesPayload
from placement_rpc.objects.resource_provider import known, locked, raise_generation


@base.PlacementObjectRegistry.register
class ProviderAggregates(base.PlacementObject):
    """The aggregates that a provider is in, and the generation at which it is."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "aggregates": fields.field(fields.Several(fields.Uuid())),
    }

    @classmethod
    def get(cls, context, provider_uuid):
        """:raises ProviderNotFound: where there is no such provider"""
        with context.database.reader() as tx:
            row = known(tx, provider_uuid)
            return cls(provider_uuid=row.uuid, generation=row.generation,
                       aggregates=list(queries.of_provider(tx, row.id)))

    def replace(self, tx, journal):
        """Put the provider into these aggregates and no others; the same ones change nothing.

        :raises ProviderNotFound: :raises ConcurrentUpdate:
        """
        row = locked(tx, self.provider_uuid, self.value("generation"))
        wanted = set(self.aggregates)
        current = queries.of_provider(tx, row.id)
        generation = row.generation
        if wanted != set(current):
            gone, added = set(current) - wanted, wanted - set(current)
            if gone:
                queries.unlink(tx, row.id, [current[uuid] for uuid in gone])
            if added:
                queries.link(tx, row.id, queries.ids(tx, added).values())
            generation = raise_generation(tx, row)
            for kind, uuids in (("disassociate", gone), ("associate", added)):
                if uuids:
                    journal.add(f"resource_provider.aggregate.{kind}", ProviderAggregatesPayload(
                        provider_uuid=row.uuid, generation=generation,
                        previous_generation=row.generation, aggregates=sorted(uuids)))
        return ProviderAggregates(
            provider_uuid=row.uuid, generation=generation, aggregates=sorted(wanted))
