# SPDX-License-Identifier: Apache-2.0
"""The relay: from the outbox to the bus, in order, at least once.

Every conductor runs one; the one that holds the lease works. It gives events their positions,
publishes them, waits for the confirms, and remembers how far it came. What it published without
coming to remember is published again, by it or by whoever takes over: the same event id tells.
"""

import logging
import threading
import time

from placement_rpc import exception
from placement_rpc.db.queries import events
from placement_rpc.notifications.publishers import Unconfirmed

LOG = logging.getLogger(__name__)

LEASE = "relay"
_LONGEST_PAUSE = 2.0


class _LeaseLost(Exception):
    """Another process relays now."""


class Relay:
    """Publishes what is in the outbox, while it holds the lease.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    :param publisher: of :mod:`placement_rpc.notifications.publishers`
    :param holder: str, name of this process, unlike any other's
    """

    def __init__(self, conf, database, publisher, holder):
        self._options = conf.notifications
        self._database = database
        self._publisher = publisher
        self._holder = holder
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._renew_at = 0
        # Up to where the broker has confirmed and the store does not know it yet.
        self._confirmed = None
        self.active = False

    def start(self):
        self._thread.start()

    def wake(self):
        """Tell it that this process committed something."""
        self._woken.set()

    def stop(self):
        """End, after the batch that is under way; another process may take over at once."""
        self._ended.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()
        self._publisher.close()

    def _run(self):
        pause, busy = self._options.interval, False
        while not self._ended.is_set():
            try:
                busy = self._lead() and self._relay_some()
                pause = self._options.gather if busy else self._options.interval
            except Unconfirmed as error:
                LOG.warning("Events wait for the broker: %s", error)
                pause = min(_LONGEST_PAUSE, max(pause, 0.1) * 2)
            except _LeaseLost:
                self.active, self._confirmed = False, None
            except exception.PlacementException as error:
                LOG.warning("Events wait for the store: %s", error)
                pause = min(_LONGEST_PAUSE, max(pause, 0.1) * 2)
            except Exception:
                LOG.exception("The relay failed; it goes on")
                pause = _LONGEST_PAUSE
            self._wait(pause, busy)
        self._give_up()

    def _wait(self, pause, busy):
        if not self.active:
            # Nobody wakes who does not work.
            self._ended.wait(max(pause, self._options.lease / 3))
        elif busy:
            self._ended.wait(pause)
        else:
            self._woken.wait(pause)
        self._woken.clear()

    def _lead(self):
        """Renew the lease when a third of it is over; :returns: bool, whether it is held"""
        if self.active and time.monotonic() < self._renew_at:
            return True
        self.active = self._database.write(lambda tx: events.acquire(
            tx, LEASE, self._holder, self._options.lease), "relay")
        self._renew_at = time.monotonic() + self._options.lease / 3
        if not self.active:
            self._confirmed = None
        return self.active

    def _relay_some(self):
        """Publish the next batch; :returns: bool, whether there was any"""
        rows = self._database.write(self._next, "relay")
        self._confirmed = None
        if rows:
            self._publisher.publish(rows)
            self._confirmed = rows[-1].position
        return bool(rows)

    def _next(self, tx):
        """Remember what was confirmed, and read what comes next; :returns: list of rows"""
        self._check_lease(tx)
        if self._confirmed is not None:
            events.mark_published(tx, self._confirmed)
        events.give_positions(tx, self._options.batch)
        state = events.state(tx)
        if state is None:
            return []
        return events.after(tx, state.published_position, self._options.batch)

    def _check_lease(self, tx):
        if not events.holds(tx, LEASE, self._holder):
            raise _LeaseLost

    def _give_up(self):
        if not self.active:
            return
        self.active = False
        try:
            self._database.write(self._last, "relay")
        except _LeaseLost:
            return
        except exception.PlacementException as error:
            LOG.warning("The relay's lease runs out by itself: %s", error)

    def _last(self, tx):
        self._check_lease(tx)
        if self._confirmed is not None:
            events.mark_published(tx, self._confirmed)
        events.release(tx, LEASE, self._holder)
