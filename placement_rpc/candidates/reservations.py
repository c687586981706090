# SPDX-License-Identifier: Apache-2.0
"""Amounts that claims under way in this process are about to take."""

import dataclasses
import threading


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """What one claim is about to take of one provider: ``amounts`` by class id."""

    provider_id: int
    amounts: dict[int, int]


class Reservations:
    """The reservations of concurrent claims, so that they do not all try the last free provider.

    A reservation binds the candidates offered by this process only. The store decides each claim.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._amounts: dict[int, dict[int, int]] = {}

    def amounts(self) -> dict[int, dict[int, int]]:
        """Return a copy of the reserved amounts: provider id to dict of class id to amount."""
        with self._lock:
            return {id_: dict(amounts) for id_, amounts in self._amounts.items()}

    def make(self, provider_id: int, amounts: dict[int, int]) -> Reservation:
        """Reserve amounts of a provider."""
        with self._lock:
            reserved = self._amounts.setdefault(provider_id, {})
            for class_id, amount in amounts.items():
                reserved[class_id] = reserved.get(class_id, 0) + amount
        return Reservation(provider_id, amounts)

    def cancel(self, reservation: Reservation) -> None:
        """End a reservation, after its claim was accepted or refused."""
        with self._lock:
            reserved = self._amounts[reservation.provider_id]
            for class_id, amount in reservation.amounts.items():
                reserved[class_id] -= amount
            if not any(reserved.values()):
                del self._amounts[reservation.provider_id]
