# SPDX-License-Identifier: Apache-2.0
"""Explain which rules keep a provider from fitting a request."""

from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates.query import ProviderView
from placement_rpc.objects.explanation import Explanation, ExplanationList
from placement_rpc.objects.request import ResourceRequest


def explain(request: ResourceRequest, views: list[ProviderView]) -> ExplanationList:
    """Explain for each provider which rules a request fails."""
    return ExplanationList(objects=[_explained(view, request) for view in views])


def _explained(view, request):
    reasons = _membership_reasons(view, request)
    for name, amount in sorted(request.resources.items()):
        reasons += _inventory_reasons(name, amount, view.inventories[name])
    return Explanation(provider_uuid=view.uuid, name=view.name, generation=view.generation,
                       fits=not reasons, reasons=reasons)


def _membership_reasons(view, request):
    reasons = [_reason("member_of", "is in none of the aggregates " + ", ".join(uuids))
               for uuids in request.value("member_of") or ()
               if not rule.in_any(view.aggregates, uuids)]
    forbidden = [uuid for uuid in request.value("not_member_of") or ()
                 if rule.in_any(view.aggregates, [uuid])]
    if forbidden:
        reasons.append(_reason("not_member_of", "is in the aggregates " + ", ".join(forbidden)))
    return reasons


def _inventory_reasons(name, amount, inventory):
    """Return a reason for each rule of an inventory that an amount fails (DESIGN rule 1)."""
    if inventory is None:
        return [_reason("inventory", f"has no inventory of {name}", name, amount, 0, amount)]
    capacity, used = inventory["capacity"], inventory["used"]
    smallest, largest, step = (inventory[key] for key in ("min_unit", "max_unit", "step_size"))
    reasons = []
    if not rule.has_room(capacity, used, amount):
        free = max(0, rule.free_of(capacity, used))
        reasons.append(_reason("capacity", f"{free} of a capacity of {capacity} are free",
                               name, amount, free, amount - free))
    if not rule.reaches_min_unit(amount, smallest):
        reasons.append(_reason("min_unit", "is less than may be taken at a time",
                               name, amount, smallest, smallest - amount))
    if not rule.within_max_unit(amount, largest):
        reasons.append(_reason("max_unit", "is more than may be taken at a time",
                               name, amount, largest, amount - largest))
    if not rule.is_on_step(amount, step):
        reasons.append(_reason("step_size", "is not a multiple of the step",
                               name, amount, step, amount % step))
    return reasons


def _reason(failed, detail, resource_class=None, requested=None, allowed=None, by=None):
    return {"rule": failed, "resource_class": resource_class, "requested": requested,
            "allowed": allowed, "by": by, "detail": detail}
