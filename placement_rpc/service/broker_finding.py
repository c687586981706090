# SPDX-License-Identifier: Apache-2.0
"""What a check of a broker finds."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A queue, a node or another part of a broker, and its faults.

    ``kind`` is ``calls``, ``commands``, ``dead letters``, ``stream``, ``listener``, ``exchange``,
    ``node`` or ``cluster``. ``trouble`` and ``mend``, the fault and its remedy, are lists of str
    in the same order; both are empty if there is no fault. ``notes``, a list of str, has what is
    worth knowing and no fault, and what cannot be found out.
    """

    queue: str
    kind: str
    messages: int
    consumers: int
    trouble: list
    mend: list
    notes: list = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, queue, kind, faults, messages=0, consumers=0, notes=()):
        """Return a finding.

        :param faults: list of tuples of a fault and its remedy
        """
        return cls(queue, kind, messages, consumers, [fault for fault, _ in faults],
                   [remedy for _, remedy in faults], list(notes))
