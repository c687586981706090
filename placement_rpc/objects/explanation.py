# SPDX-License-Identifier: Apache-2.0
"""Why a provider has no room for a request: each rule that fails, and by how much."""

from placement_rpc.db.queries import candidates, providers
from placement_rpc.objects import base, fields
from placement_rpc.objects.resource_class import resolve
from placement_rpc.objects.resource_provider import known


@base.PlacementObjectRegistry.register
class Explanation(base.PlacementObject):
    """Whether one provider fits, and why not.

    ``reasons`` has a mapping for each rule that fails: ``rule`` (``member_of``, ``inventory``,
    ``capacity``, ``min_unit``, ``max_unit`` or ``step_size``), ``resource_class``,
    ``requested``, ``allowed``, ``by`` (how much too much or too little it is) and ``detail``.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "provider_uuid": fields.field(fields.Uuid()),
        "name": fields.field(fields.Name()),
        "generation": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1)),
        "fits": fields.BooleanField(),
        "reasons": fields.field(fields.Several(fields.Json(), maximum=1000)),
    }


@base.PlacementObjectRegistry.register
class ExplanationList(base.PlacementObjectList):
    """Explanations of several providers."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {"objects": fields.ListOfObjectsField("Explanation")}

    @classmethod
    def page(cls, context, request, marker=None, limit=None):
        """Providers in the order of their ids, each with what it says to a request.

        :param request: :class:`placement_rpc.objects.request.ResourceRequest`
        :param marker: str, uuid of the provider after which to begin
        :param limit: int, how many at the most
        :raises ResourceClassNotFound: :raises ProviderNotFound: when the marker is none
        """
        member_of = request.value("member_of") or ()
        with context.database.reader() as tx:
            if marker:
                known(tx, marker)
            ids = resolve(tx, request.resources)
            rows = providers.page(tx, marker=marker, limit=limit)
            found = candidates.inventories_of(tx, [row.id for row in rows], ids.values())
            members = candidates.members(tx, [row.id for row in rows], member_of)
        return cls(objects=[_explained(
            row, request, {name: found.get((row.id, id_)) for name, id_ in ids.items()},
            [row.id in each for each in members]) for row in rows])


def _explained(row, request, inventories, memberships):
    reasons = [_reason("member_of", None, None, None, None,
                       "is in none of the aggregates " + ", ".join(uuids))
               for uuids, member in zip(
                   request.value("member_of") or (), memberships, strict=True) if not member]
    for name, amount in sorted(request.resources.items()):
        reasons += _reasons(name, amount, inventories[name])
    return Explanation(provider_uuid=row.uuid, name=row.name, generation=row.generation,
                       fits=not reasons, reasons=reasons)


def _reasons(name, amount, inventory):
    """What one inventory says to one amount (DESIGN rule 1)."""
    if inventory is None:
        return [_reason("inventory", name, amount, 0, amount, f"has no inventory of {name}")]
    found = []
    free = max(0, inventory.capacity - inventory.used)
    if amount > free:
        found.append(_reason(
            "capacity", name, amount, free, amount - free,
            f"{free} of a capacity of {inventory.capacity} are free"))
    if amount < inventory.min_unit:
        found.append(_reason("min_unit", name, amount, inventory.min_unit,
                             inventory.min_unit - amount, "is less than may be taken at a time"))
    if amount > inventory.max_unit:
        found.append(_reason("max_unit", name, amount, inventory.max_unit,
                             amount - inventory.max_unit, "is more than may be taken at a time"))
    if amount % inventory.step_size:
        found.append(_reason("step_size", name, amount, inventory.step_size,
                             amount % inventory.step_size, "is no multiple of the step"))
    return found


def _reason(rule, name, requested, allowed, by, detail):
    return {"rule": rule, "resource_class": name, "requested": requested, "allowed": allowed,
            "by": by, "detail": detail}
