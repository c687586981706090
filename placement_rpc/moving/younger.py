# SPDX-License-Identifier: Apache-2.0
"""Tell the differences that come of use since the last import from those that do not.

Each pass of an import makes the store equal to Placement's. Until the import is finished, the
store is held, so that only Placement changes; after that both may be in use. What has changed
since shows in generations, which only grow, and in times. A row that was deleted shows in neither,
and is younger if the store from which it went was in use.
"""

import datetime
from typing import NamedTuple, Self

from placement_rpc.moving.compare import Difference
from placement_rpc.spool import SpooledTexts

_IN_PLACEMENT = "changed in Placement since the last import"
_HERE = "changed here since the import was finished"
_GONE_IN_PLACEMENT = "deleted in Placement since the last import"
_GONE_HERE = "deleted here since the import was finished"


class Since(NamedTuple):
    """Since when each store is in use without the other; None if it is not.

    :ivar placement: when the last pass of the import began
    :ivar store: when the import was finished
    """

    placement: datetime.datetime | None = None
    store: datetime.datetime | None = None


class Judge:
    """Judges the differences of one comparison, which come in order of kinds.

    It keeps the uuids of younger providers and consumers in a temporary file, until it is closed:
    what belongs to them may have changed with them.

    :param since: :class:`Since`
    """

    def __init__(self, since: Since):
        self._since = since
        self._grown = SpooledTexts()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._grown.close()

    def reason(self, difference: Difference) -> str | None:
        """Return why a difference is merely younger; None if nothing says so."""
        if difference.kind in ("providers", "consumers"):
            return self._of_owner(difference)
        owners = difference.key[:2] if difference.kind == "allocations" else difference.key[:1]
        for owner in owners:
            if (reason := self._grown.get(owner)) is not None:
                return reason
        return self._by_times(difference)

    def _of_owner(self, difference):
        source, target = difference.source, difference.target
        if source is None or target is None:
            reason = self._by_times(difference)
        elif source.generation > target.generation:
            reason = _IN_PLACEMENT
        elif source.generation < target.generation and not self._is_held():
            reason = _HERE
        else:
            reason = self._by_times(difference)
        if reason is not None:
            self._grown[difference.key[0]] = reason
        return reason

    def _is_held(self):
        """Return whether only Placement is in use.

        A lower generation in Placement then belongs to a row that was deleted and made again.
        """
        return self._since.placement is not None and self._since.store is None

    def _by_times(self, difference):
        since = self._since
        if _is_after(difference.source, since.placement):
            return _IN_PLACEMENT
        if _is_after(difference.target, since.store):
            return _HERE
        if difference.source is None and since.placement is not None:
            return _GONE_IN_PLACEMENT
        if difference.target is None and since.store is not None:
            return _GONE_HERE
        return None


def _is_after(row, since):
    if row is None or since is None:
        return False
    newest = max(filter(None, row[-2:]), default=None)
    if newest is None:
        return False
    # Databases that keep whole seconds cut off the rest.
    return newest > since or (not newest.microsecond and newest == since.replace(microsecond=0))
