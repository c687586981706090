# SPDX-License-Identifier: Apache-2.0
"""Explain which rules keep a provider from fitting a request."""

from collections.abc import Mapping, Sequence

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
        reasons += inventory_reasons(name, amount, view.inventories[name])
    return Explanation(provider_uuid=view.uuid, name=view.name, generation=view.generation,
                       fits=not reasons, reasons=reasons)


def _membership_reasons(view, request):
    reasons = [reason("member_of", "is in none of the aggregates " + ", ".join(uuids))
               for uuids in request.value("member_of") or ()
               if not rule.in_any(view.aggregates, uuids)]
    forbidden = [uuid for uuid in request.value("not_member_of") or ()
                 if rule.in_any(view.aggregates, [uuid])]
    if forbidden:
        reasons.append(reason("not_member_of", "is in the aggregates " + ", ".join(forbidden)))
    return reasons


def any_of(names: Sequence[str]) -> str:
    """Return the text of a choice: the only name, or "one of" and the names."""
    return f"one of {', '.join(names)}" if len(names) > 1 else names[0]


def inventory_reasons(name: str, amount: int, inventory: Mapping[str, int] | None,
                      ) -> list[dict]:
    """Return a reason for each rule of an inventory that an amount fails (DESIGN rule 1).

    :param inventory: mapping of capacity, used, min_unit, max_unit and step_size; None if there is
        none of the class
    """
    if inventory is None:
        return [reason("inventory", f"has no inventory of {name}", name, amount, 0, amount)]
    capacity, used = inventory["capacity"], inventory["used"]
    smallest, largest, step = (inventory[key] for key in ("min_unit", "max_unit", "step_size"))
    reasons = []
    if not rule.has_room(capacity, used, amount):
        free = max(0, int(rule.free_of(capacity, used)))
        reasons.append(reason("capacity", f"{free} of a capacity of {capacity} are free",
                              name, amount, free, amount - free))
    if not rule.reaches_min_unit(amount, smallest):
        reasons.append(reason("min_unit", "is less than may be taken at a time",
                              name, amount, smallest, smallest - amount))
    if not rule.within_max_unit(amount, largest):
        reasons.append(reason("max_unit", "is more than may be taken at a time",
                              name, amount, largest, amount - largest))
    if not rule.is_on_step(amount, step):
        reasons.append(reason("step_size", "is not a multiple of the step",
                              name, amount, step, amount % step))
    return reasons


def reason(failed: str, detail: str, resource_class: str | None = None,
           requested: int | None = None, allowed: int | None = None,
           by: int | None = None) -> dict:
    """Return a reason, as an :class:`placement_rpc.objects.explanation.Explanation` has it."""
    return {"rule": failed, "resource_class": resource_class, "requested": requested,
            "allowed": allowed, "by": by, "detail": detail}
