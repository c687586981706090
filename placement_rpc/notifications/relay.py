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
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.db.queries import events
from placement_rpc.notifications.payload_pin import pinned
from placement_rpc.versions import pins

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
        self._pin = pins.fixed(self._options.payload_pin or pins.AUTO)
        self._database = database
        self._publisher = publisher
        self._holder = holder
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._renew_at = 0
        # What the broker has confirmed and the store does not know yet: after which position
        # it was read, and up to which it goes.
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
        pause = 0
        while not self._ended.is_set():
            try:
                busy = self._lead() and self._relay_some()
                if self.active and not busy:
                    self._publisher.idle()
                self._rest(busy)
                pause = 0
                continue
            except Unconfirmed as error:
                LOG.warning("Events wait for the broker: %s", error)
                self._give_positions()
            except _LeaseLost:
                LOG.info("Another process relays events now")
                self.active = False
            except exception.PlacementException as error:
                LOG.warning("Events wait for the store: %s", error)
            except Exception:
                LOG.exception("The relay failed; it goes on")
            # Whatever is committed meanwhile does not make it try sooner.
            pause = min(_LONGEST_PAUSE, max(pause, 0.1) * 2)
            self._ended.wait(pause)
        self._give_up()

    def _rest(self, busy):
        """Wait until there may be something to do."""
        if not self.active:
            # Nobody wakes who does not work.
            self._ended.wait(self._options.lease / 3)
        elif busy:
            self._ended.wait(self._options.gather)
        else:
            self._woken.wait(self._options.interval)
        self._woken.clear()

    def _lead(self):
        """Renew the lease when a third of it is over; :returns: bool, whether it is held"""
        if self.active and time.monotonic() < self._renew_at:
            return True
        self.active = self._database.write(lambda tx: events.acquire(
            tx, LEASE, self._holder, self._options.lease), "relay")
        self._renew_at = time.monotonic() + self._options.lease / 3
        if not self.active:
            self._publisher.close()
        return self.active

    def _still_leading(self):
        """Called while confirms are waited for; :raises _LeaseLost: when they are in vain"""
        if self._ended.is_set() or not self._lead():
            raise _LeaseLost

    def _relay_some(self):
        """Publish the next batch; :returns: bool, whether there was any"""
        if self._confirmed is None:
            with self._database.reader() as tx:
                if events.is_idle(tx):
                    return False
        batch = self._database.write(lambda tx: events.next_batch(
            tx, LEASE, self._holder, self._confirmed, self._options.batch), "relay")
        if batch is None:
            raise _LeaseLost
        self._confirmed = None
        read_from, rows = batch
        if rows:
            self._publisher.publish(
                [pinned(row, self._pin) for row in rows] if self._pin else rows,
                self._still_leading)
            self._confirmed = read_from, rows[-1].position
        return bool(rows)

    def _give_positions(self):
        """Let events that can not be published have positions: the store is read, too."""
        try:
            while not self._ended.is_set() and self._database.write(
                    lambda tx: events.give_waiting_positions(
                        tx, LEASE, self._holder, self._options.batch), "relay"):
                LOG.debug("Events have positions that are not published")
        except exception.PlacementException as error:
            LOG.warning("Events wait for the store: %s", error)

    def _give_up(self):
        """Remember what was confirmed, and let another process take over at once."""
        self.active = False
        try:
            self._database.write(self._last, "relay")
        except exception.PlacementException as error:
            LOG.warning("The relay's lease runs out by itself: %s", error)

    def _last(self, tx):
        if self._confirmed is not None:
            events.mark_published(tx, *self._confirmed)
        events.release(tx, LEASE, self._holder)
