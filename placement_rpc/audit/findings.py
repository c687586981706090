# SPDX-License-Identifier: Apache-2.0
"""What an audit finds, kept until it is printed or corrected."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from placement_rpc.spool import Spool

#: Kinds of findings, with what each of them means.
KINDS = {
    "orphaned": "allocations of a consumer that nova does not know",
    "missing": "a server that has a host and holds nothing",
    "doubled": "a server that holds on two compute nodes, by itself or with its migration",
    "misplaced": "a server that holds on another compute node than nova's",
    "unserved": "a compute node without a compute service",
}
#: Corrections, with what each of them does.
CORRECTIONS = {
    "release": "release all that the consumer holds",
    "keep": "release what the server holds on the other compute nodes",
    "move": "claim the same from the compute node that nova names",
    "delete": "delete the provider with all below it",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or may be.

    :param kind: one of :data:`KINDS`
    :param uuid: of the consumer, of the server, or of the provider
    :param detail: what is wrong, as a sentence
    :param server: uuid of the server that it is about, if it is known
    :param name: of the provider
    :param held_on: names of the compute nodes from which the consumer has allocations
    :param host: the host of the server by nova
    :param project_id: of the consumer
    :param allocations: of the consumer, by provider and class
    :param correction: one of :data:`CORRECTIONS`; None if there is none
    :param obstacle: why there is no correction; None if there is one
    :param is_under_way: whether nothing is wrong as long as nova is moving the server
    :param consumer: the values that a correction needs of the consumer
    :param wanted: the allocations after the correction
    :param providers: the uuids and generations of the providers to delete, in this order
    """

    kind: str
    uuid: str
    detail: str
    server: str | None = None
    name: str | None = None
    held_on: tuple[str, ...] = ()
    host: str | None = None
    project_id: str | None = None
    allocations: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    correction: str | None = None
    obstacle: str | None = None
    is_under_way: bool = False
    consumer: dict[str, Any] | None = None
    wanted: dict[str, dict[str, int]] | None = None
    providers: tuple[tuple[str, int], ...] = ()

    def shown(self) -> dict[str, Any]:
        """Return the finding as JSON shows it, without the values that only a correction needs."""
        found = dataclasses.asdict(self)
        del found["consumer"]
        return {**found, "held_on": list(self.held_on),
                "providers": [uuid for uuid, _ in self.providers]}


class Findings:
    """Findings in a temporary file, with their numbers.

    A finding that was to be corrected has an outcome: a text.
    """

    def __init__(self) -> None:
        self._spool = Spool()
        self.counts = dict.fromkeys(KINDS, 0)
        #: how many can be corrected, by correction
        self.correctable = dict.fromkeys(CORRECTIONS, 0)
        #: how many are wrong, and how many of these were corrected
        self.wrong = self.corrected = 0

    def add(self, finding: Finding, outcome: str | None = None, is_corrected: bool = False,
            ) -> None:
        """Append a finding."""
        self.counts[finding.kind] += 1
        self.wrong += not finding.is_under_way
        self.corrected += is_corrected
        if finding.correction:
            self.correctable[finding.correction] += 1
        self._spool.append([dataclasses.asdict(finding), outcome])

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[tuple[Finding, str | None]]:
        """Yield each finding with its outcome, in the order of their addition."""
        for values, outcome in self._spool:
            values["held_on"] = tuple(values["held_on"])
            values["providers"] = tuple(tuple(each) for each in values["providers"])
            yield Finding(**values), outcome

    def close(self) -> None:
        """Remove the file."""
        self._spool.close()
