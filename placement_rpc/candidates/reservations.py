# SPDX-License-Identifier: Apache-2.0
"""Amounts that claims under way in this process are about to take."""

import threading
from collections.abc import Mapping

#: Provider id to a mapping of class id to amount.
Amounts = Mapping[int, Mapping[int, int]]


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

    def reserve(self, amounts: Amounts) -> None:
        """Reserve what a claim is about to take."""
        with self._lock:
            for provider_id, of_provider in amounts.items():
                reserved = self._amounts.setdefault(provider_id, {})
                for class_id, amount in of_provider.items():
                    reserved[class_id] = reserved.get(class_id, 0) + amount

    def cancel(self, amounts: Amounts) -> None:
        """End the reservation of a claim, after it was accepted or refused."""
        with self._lock:
            for provider_id, of_provider in amounts.items():
                reserved = self._amounts[provider_id]
                for class_id, amount in of_provider.items():
                    reserved[class_id] -= amount
                if not any(reserved.values()):
                    del self._amounts[provider_id]
