# SPDX-License-Identifier: Apache-2.0
"""The states of an import: it holds the store from its first pass until it is finished.

The hold is what makes passes safe: each one makes this store equal to another one, and would take
away what clients have written here since.
"""

import urllib.parse
import uuid
from typing import Any

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.accounting.outbox import Outbox
from placement_rpc.db.api import Connection, Database
from placement_rpc.db.queries import hold, import_state
from placement_rpc.moving.younger import Since
from placement_rpc.objects import class_names
from placement_rpc.objects.payloads import StoreImportPayload

#: The type of the events that an import writes.
EVENT = "store.import"
_REASON = ("it is filled with the data of OpenStack Placement until the operator runs "
           "'placement-rpc-manage placement import --finish'")
_SOURCE_LENGTH = 255
# Parameters of a URL that are a part of the address of a database.
_ADDRESS = frozenset(("host", "hostaddr", "port", "unix_socket", "service", "dbname",
                      "read_default_file", "read_default_group"))


def begin_pass(database: Database, source: str, force: bool = False) -> str:
    """Begin a pass: the first one holds the store, a later one goes on.

    An earlier pass that still runs ends with its next batch.

    :param source: the database that is read, without its password
    :param force: whether it may be another one than that of the passes before
    :returns: the id of the pass
    :raises ImportRefused: if the store has data that no import has brought, or the import is
        finished, or passes before have read another database
    """
    pass_id, source = str(uuid.uuid4()), source[:_SOURCE_LENGTH]

    is_first = False

    def change(tx):
        nonlocal is_first
        row = import_state.get(tx, lock=True)
        is_first = row is None
        if row is None:
            # The hold first: what is in the store then stays so.
            hold.set_(tx, _REASON)
            _check(tx, row)
            import_state.begin(tx, source, pass_id)
        else:
            _check(tx, row)
            _check_source(row, source, force)
            import_state.begin_pass(tx, source, pass_id)

    database.write(change, "import")
    with database.writer() as tx:
        hold.drain(tx)
    if is_first:
        # What a change brings that was drained is not the import's.
        with database.reader() as tx:
            _check(tx, None)
    return pass_id


def check(database: Database, source: str, force: bool = False) -> None:
    """Check that a pass could begin, without changing anything.

    :param source: as of :func:`begin_pass`, as is ``force``
    :raises ImportRefused: as :func:`begin_pass`
    """
    with database.reader() as tx:
        row = import_state.get(tx)
        _check(tx, row)
    if row is not None:
        _check_source(row, source[:_SOURCE_LENGTH], force)


def _check_source(row, source, force):
    """Check that a pass reads the same database as those before it.

    Another one, such as that of a test cloud, would replace all that they have brought.

    :raises ImportRefused: if it does not
    """
    if _identity(row.source) != _identity(source) and not force:
        raise exception.ImportRefused(
            reason=f"the import began with {row.source}, and a pass from {source} would replace "
                   "what it has brought; give --force if this is the same cloud's database at "
                   "another address")


def _identity(source):
    """Return what tells a database from others: its URL, without options of the connection."""
    address, _, query = source.partition("?")
    return address, sorted(each for each in urllib.parse.parse_qsl(query) if each[0] in _ADDRESS)


def _check(tx: Connection, row: Any) -> None:
    if row is None:
        found = import_state.contents(tx, class_names.PREDEFINED)
        if found:
            raise exception.ImportRefused(
                reason=f"the store has {', '.join(found)} that no import has brought, and would "
                       "lose them; import into an empty database")
        return
    if row.finished_at is not None:
        raise exception.ImportRefused(
            reason=f"the import was finished at {row.finished_at:%Y-%m-%d %H:%M:%S} UTC, and the "
                   "store is in use: another pass would take away what clients have written since")
    if hold.state(tx).held_since is None:
        raise exception.ImportRefused(
            reason="the hold of the store was released without '--finish', and clients may have "
                   "written to it")
    _check_events(tx, row)


def _check_events(tx, row):
    """Check that only the import has written events since it began.

    :raises ImportRefused: if other processes have changed the store
    """
    found = import_state.other_events(tx, row.last_event_before, EVENT)
    changes = ", ".join(f"{number} {event_type}" for event_type, number in found)
    if not found:
        pruned = import_state.uncounted_events(tx, row.events_before)
        changes = f"{pruned} whose events were pruned" if pruned > 0 else ""
    if changes:
        raise exception.ImportRefused(
            reason=f"other processes have changed the store since the import began ({changes})")


def begin_batch(tx: Connection, pass_id: str) -> None:
    """Check, in the transaction of a batch, that the pass may go on.

    :raises ImportOvertaken: if a later pass has begun, or the import is finished
    """
    if not import_state.begin_batch(tx, pass_id):
        raise exception.ImportOvertaken()


def end_pass(database: Database, pass_id: str) -> bool:
    """Record that a pass is complete, and announce what it and interrupted ones have changed.

    :returns: whether there was anything to announce
    :raises ImportOvertaken: as :func:`begin_batch`
    """
    def change(tx):
        row = import_state.get(tx, lock=True)
        if not import_state.end_pass(tx, pass_id):
            raise exception.ImportOvertaken()
        if row.is_interrupted:
            _announce(tx, row.passes + 1)
        return row.is_interrupted

    return database.write(change, "import")


def finish(database: Database) -> str:
    """Accept changes again, and begin the snapshot by which listeners get to know the allocations.

    :returns: the id of the snapshot
    :raises ImportRefused: if no pass is complete, or the last one was interrupted, or the import
        is finished already
    """
    def change(tx):
        row = import_state.get(tx, lock=True)
        if row is None or not row.passes or row.is_interrupted:
            raise exception.ImportRefused(
                reason="the store is incomplete: " + (
                    "no pass was made" if row is None else "the last pass was interrupted")
                + "; name the source with --from to make one")
        _check(tx, row)
        hold.release(tx)
        at = import_state.finish(tx)
        _announce(tx, row.passes, finished=True)
        # The time distinguishes this snapshot from later ones: see unfinished_snapshot().
        return snapshot.begin_in(tx, at)

    return database.write(change, "import")


def unfinished_snapshot(database: Database) -> str | None:
    """Return the id of the snapshot of a finished import that is not complete; None if it is."""
    with database.reader() as tx:
        row = import_state.get(tx)
        if row is None or row.finished_at is None:
            return None
    return snapshot.under_way(database, row.finished_at)


def in_use_since(database: Database) -> Since:
    """Return since when Placement and this store are in use without the other."""
    with database.reader() as tx:
        row = import_state.get(tx)
    if row is None or not row.passes or row.is_interrupted:
        return Since()
    return Since(row.pass_begun_at, row.finished_at)


def _announce(tx, passes, finished=False):
    outbox = Outbox()
    outbox.add(EVENT, StoreImportPayload(passes=passes, finished=finished))
    outbox.write(tx, while_held=not finished)
    import_state.count_event(tx)
