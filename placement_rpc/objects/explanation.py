# SPDX-License-Identifier: Apache-2.0
"""Why a provider has no room for a request: each rule that fails, and by how much."""

from placement_rpc.objects import base, fields


@base.PlacementObjectRegistry.register
class Explanation(base.PlacementObject):
    """Whether one provider fits, and why not.

    ``reasons`` has a mapping for each rule that fails: ``rule`` (``member_of``,
    ``not_member_of``, ``inventory``, ``capacity``, ``min_unit``, ``max_unit`` or ``step_size``),
    ``resource_class``, ``requested``, ``allowed``, ``by`` (how much too much or too little it
    is) and ``detail``.
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
    def of_looks(cls, request, looks):
        """What providers say to a request.

        :param request: :class:`placement_rpc.objects.request.ResourceRequest`
        :param looks: list of :class:`placement_rpc.objects.stored_candidates.Look`
        """
        return cls(objects=[_explained(look, request) for look in looks])


def _explained(look, request):
    reasons = [_reason("member_of", None, None, None, None,
                       "is in none of the aggregates " + ", ".join(uuids))
               for uuids, member in zip(
                   request.value("member_of") or (), look.memberships, strict=True)
               if not member]
    if look.barred:
        reasons.append(_reason("not_member_of", None, None, None, None,
                               "is in the aggregates " + ", ".join(look.barred)))
    for name, amount in sorted(request.resources.items()):
        reasons += _reasons(name, amount, look.inventories[name])
    return Explanation(provider_uuid=look.uuid, name=look.name, generation=look.generation,
                       fits=not reasons, reasons=reasons)


def _reasons(name, amount, inventory):
    """What one inventory says to one amount (DESIGN rule 1)."""
    if inventory is None:
        return [_reason("inventory", name, amount, 0, amount, f"has no inventory of {name}")]
    found = []
    free = max(0, inventory["capacity"] - inventory["used"])
    if amount > free:
        found.append(_reason(
            "capacity", name, amount, free, amount - free,
            f"{free} of a capacity of {inventory['capacity']} are free"))
    if amount < inventory["min_unit"]:
        found.append(_reason(
            "min_unit", name, amount, inventory["min_unit"], inventory["min_unit"] - amount,
            "is less than may be taken at a time"))
    if amount > inventory["max_unit"]:
        found.append(_reason(
            "max_unit", name, amount, inventory["max_unit"], amount - inventory["max_unit"],
            "is more than may be taken at a time"))
    if amount % inventory["step_size"]:
        found.append(_reason("step_size", name, amount, inventory["step_size"],
                             amount % inventory["step_size"], "is no multiple of the step"))
    return found


def _reason(rule, name, requested, allowed, by, detail):
    return {"rule": rule, "resource_class": name, "requested": requested, "allowed": allowed,
            "by": by, "detail": detail}
