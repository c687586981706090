# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement import``: bring over the data of OpenStack Placement."""

import sys
import time

from placement_rpc import exception
from placement_rpc.accounting import snapshot
from placement_rpc.backoff import Backoff
from placement_rpc.cmd import moving_output, output, placement_url
from placement_rpc.moving import hold, importing, own_store
from placement_rpc.upgrade import gate
from placement_rpc.upgrade.status import EVERYWHERE

#: Seconds for which a step of the snapshot is tried again while the database cannot be reached.
PATIENCE = 60.0

_INCOMPLETE = ("The snapshot is not complete: run the import with --finish again, or let the "
               "conductors complete it")
_AGAIN = "run the import again to complete it"
_NOTHING_CHANGED = "nothing was changed"
_COLUMNS = ["kind", "read", "created", "changed", "deleted"]
_PLANNED = {"created": "to_create", "changed": "to_change", "deleted": "to_delete"}


def run(database, options, conf):
    has_source = placement_url.is_given(options, "from")
    if (options.dry_run and options.finish) or not (has_source or options.finish):
        print("placement-rpc-manage: give --from or --from-config, with --dry-run or --finish or "
              "neither; or --finish alone", file=sys.stderr)
        return 2
    begun = hold.unfinished_snapshot(database) if options.finish else None
    if begun is not None:
        # The import was finished by a run that ended before the snapshot did.
        _take_snapshot(database, begun)
        return 0
    if options.dry_run:
        return _dry_run(database, options, conf)
    end = _pass if has_source else _end
    snapshot_id = end(database, options, conf)
    if snapshot_id is not None:
        _take_snapshot(database, snapshot_id)
    return 0


def _end(database, options, _conf):
    """Finish the import, if that was asked for, and say whether the store accepts changes.

    :returns: the id of the snapshot that has begun; None if the import is not finished
    """
    if not options.finish:
        print("The store is held: changes are refused until the import is run with --finish",
              file=sys.stderr)
        return None
    snapshot_id = hold.finish(database)
    # Said at once: clients need not wait for the many steps of the snapshot.
    print("The import is finished: the store accepts changes", file=sys.stderr)
    return snapshot_id


def _dry_run(database, options, conf):
    obstacle = None
    address = placement_url.address_of(options, "from")
    try:
        _check_services(database, conf)
        hold.check(database, address.shown, options.force)
    except exception.PlacementException as error:
        obstacle = error
    with address.store() as source:
        _compared(database, source, address, options, lambda work: work.compare(), planned=True)
    if obstacle is not None:
        print(f"placement-rpc-manage: {obstacle}", file=sys.stderr)
    return 0 if obstacle is None else 1


def _pass(database, options, conf):
    """Make a pass, and print what it has done; the rest is as of :func:`_end`."""
    _check_services(database, conf)
    address = placement_url.address_of(options, "from")
    # It is opened first: a wrong address must not hold the store.
    with address.store() as source:
        pass_id = hold.begin_pass(database, address.shown, options.force)

        def work(done):
            # All of it before anything is printed: the reader of the output may have ended.
            done.run(database, pass_id, options.batch)
            hold.end_pass(database, pass_id)
            return _end(database, options, conf)

        return _compared(database, source, address, options, work)


def _compared(database, source, address, options, work, planned=False):
    """Do the work of a pass, and print what was found and done; return what the work returns."""
    with moving_output.Findings(options.format) as findings:
        with own_store.opened(database) as target, moving_output.progress(
                address.sizes, _NOTHING_CHANGED if planned else _AGAIN) as advance:
            done = importing.Pass(source, target, findings.add, advance)
            result = work(done)
        rows = [{"kind": kind, **found._asdict()} for kind, found in done.counts.items()]
        if planned:
            rows = [{_PLANNED.get(key, key): value for key, value in row.items()}
                    for row in rows]
        findings.show(rows, [_PLANNED.get(each, each) if planned else each for each in _COLUMNS])
    return result


def _check_services(database, conf):
    """Check that each live service knows of the hold.

    :raises ImportRefused: if one does not
    """
    older = gate.LiveReleases(conf, database).holders(EVERYWHERE)
    if older:
        raise exception.ImportRefused(
            reason="services of older releases, which would write to the store meanwhile, are "
                   "alive: " + ", ".join(map(gate.name, older)))


def _take_snapshot(database, snapshot_id):
    """Take the steps of a snapshot until it is complete; conductors take some of them.

    :raises StoreUnavailable: if the database cannot be reached for :data:`PATIENCE`
    :raises StoreBusy: if it is as busy for as long
    """
    done = 0
    with output.interruptible(
            "placement-rpc-manage", lambda: f"the snapshot has {done} consumers", _INCOMPLETE,
    ), output.progress("Taking the snapshot of all allocations") as advance:
        while (consumers := _take_step(database, snapshot_id)) is not None:
            advance(consumers - done)
            done = consumers
    print("The snapshot of all allocations is complete", file=sys.stderr)


def _take_step(database, snapshot_id):
    """Take one step, and try again while the database cannot be reached.

    The store accepts changes by now, so a restart of the database must not end the command.

    :returns: how many consumers the snapshot had before the step; None if it was complete
    """
    deadline, backoff = time.monotonic() + PATIENCE, Backoff()
    while True:
        try:
            found = snapshot.progress(database, snapshot_id)
            if found is None or found.complete:
                return None
            snapshot.go_on(database)
            return found.consumers
        except (exception.StoreUnavailable, exception.StoreBusy):
            if time.monotonic() >= deadline:
                print(_INCOMPLETE, file=sys.stderr)
                raise
        time.sleep(backoff.next())
