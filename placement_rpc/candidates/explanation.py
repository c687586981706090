# SPDX-License-Identifier: Apache-2.0
"""Explain why a provider does not fit a request."""

from placement_rpc.objects.explanation import Explanation, ExplanationList


def explain(request, views):
    """Explain for each provider which rules a request fails.

    :param request: :class:`placement_rpc.objects.request.ResourceRequest`
    :param views: list of :class:`placement_rpc.candidates.query.ProviderView`
    :returns: :class:`placement_rpc.objects.explanation.ExplanationList`
    """
    return ExplanationList(objects=[_explained(view, request) for view in views])


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
