# SPDX-License-Identifier: Apache-2.0
"""The cause of different answers: what two stores hold about the providers in question.

An answer differs because the stores do, as they do when the cloud went on after the last import,
or although they agree, which no import mends.
"""

from typing import Any

from placement_rpc.moving import answers
from placement_rpc.moving.access_log import Request
from placement_rpc.moving.answers import Answer, Difference
from placement_rpc.moving.placement_service import PlacementService

_PARTS = ("", "/inventories", "/usages", "/traits", "/aggregates")
# These have all of them, in the same shape.
_MICROVERSION = "1.19"
# How many providers are looked at.
_LOOKED_AT = 8
_FOUND_IN_ONE = ({200, 404}, {204, 404})
# Answers that are computed from the state of many providers; others are that state itself.
_SEARCHES = ("/allocation_candidates", "/resource_providers")


class StoreDifferences:
    """Differences of what two services say of single providers.

    :param old: one service
    :param new: the other
    """

    def __init__(self, old: PlacementService, new: PlacementService) -> None:
        self._services = old, new

    def cause(self, request: Request, answered: tuple[Answer, Answer],
              difference: Difference) -> str | None:
        """Return what the stores hold that differs.

        :param request: whose answers differ
        :param answered: those of the old and the new service
        :param difference: the first one that was found
        :returns: a text; None if the stores agree about the providers that appear in one of the
            answers and not, or differently, in the other
        """
        if request.path not in _SEARCHES:
            return self._of_read(answered, difference)
        for uuid in self._suspects(answered):
            for part in _PARTS:
                asked = Request(f"/resource_providers/{uuid}{part}", _MICROVERSION)
                pair = self._services[0].ask(asked), self._services[1].ask(asked)
                found = answers.first_difference(*pair)
                if found is not None:
                    return (f"{asked.target}: {found.where} is {found.old} in the old store, "
                            f"{found.new} in the new one")
        return None

    @staticmethod
    def _of_read(answered: tuple[Answer, Answer], difference: Difference) -> str | None:
        """Return the cause of different answers that only say what is stored."""
        statuses = {each.status for each in answered}
        if difference.where.startswith("body"):
            return "the answer is what the stores hold"
        return "only one of the stores has it" if statuses in _FOUND_IN_ONE else None

    @staticmethod
    def _suspects(answered: tuple[Answer, Answer]) -> list[str]:
        """Return uuids of providers of which the answers say different things."""
        here, there = (_providers(each.body()) for each in answered)
        alone = {*here} ^ {*there}
        unlike = {uuid for uuid in {*here} & {*there} if answers.canonical(
            here[uuid]) != answers.canonical(there[uuid])}
        return [*sorted(alone), *sorted(unlike)][:_LOOKED_AT]


def _providers(body: Any) -> dict[str, Any]:
    """Return what an answer says of each provider, by uuid."""
    if not isinstance(body, dict):
        return {}
    listed, summaries = body.get("resource_providers"), body.get("provider_summaries")
    if isinstance(listed, list):
        return {each["uuid"]: each for each in listed
                if isinstance(each, dict) and isinstance(each.get("uuid"), str)}
    return summaries if isinstance(summaries, dict) else {}
