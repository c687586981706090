# SPDX-License-Identifier: Apache-2.0
"""The relay: from the outbox to the bus, in order, at least once.

Every conductor runs one; the one that holds the lease works. It gives events their positions,
publishes them, waits for the confirms, and marks them as published; while it waits, it reads the
next ones and makes their messages if there are many. Events that it published but could not mark
are published again, by it or by the relay that takes over; their event ids identify them.

Before it publishes with a new lease or after it has lost the database, it checks that the store
has what was published before. If not, it publishes nothing until the two are reconciled.
"""

import contextlib
import logging
import threading
import time

from placement_rpc import exception
from placement_rpc.amqp.publisher import Unconfirmed
from placement_rpc.backoff import Backoff
from placement_rpc.db.queries import events, leases, relaying
from placement_rpc.notifications import divergence, payload_pin
from placement_rpc.telemetry import tracing

LOG = logging.getLogger(__name__)

LEASE = "relay"
# Seconds for which a batch that was read ahead may be published: the store may lose its positions,
# and the next read notices that.
_FRESH = 1.0


class _LeaseLost(Exception):
    """The lease was lost to another process, or the relay was stopped."""


class Relay:
    """Publishes the events of the outbox, while it holds the lease.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param database: :class:`placement_rpc.db.api.Database`
    :param publisher: of :mod:`placement_rpc.notifications.publishers`
    :param holder: str, the name of this process, different from that of any other
    """

    def __init__(self, conf, database, publisher, holder):
        self._options = conf.notifications
        self._pin = payload_pin.release_of(self._options)
        self._database = database
        self._publisher = publisher
        self._holder = holder
        self._woken = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self._renew_at = 0
        # The events that the broker has confirmed and that are not marked in the store yet: the
        # position that they were read after, and the last one.
        self._confirmed = None
        # The batch that was read while the broker confirmed the one before it, with its messages,
        # which are None if they could not be made; and until when it may be published.
        self._ahead, self._fresh_until = None, 0.0
        # The highest position that was given in an epoch, and the highest that was sent or is in
        # the stream. They do not go down within the epoch, or a loss would not be seen.
        self._epoch, self._given, self._sent = None, 0, 0
        # Whether the store has what was published before.
        self._is_compared = False
        self._watch = leases.Watch()
        #: Whether it held the lease at the last check.
        self.active = False
        #: In what the stream differs from the store, a str; None if it does not, or if another
        #: process has the lease.
        self.difference = None

    def start(self):
        """Start the thread that publishes."""
        self._thread.start()

    def wake(self):
        """Poll the outbox at once, since this process has committed events."""
        self._woken.set()

    def stop(self):
        """Stop after the batch that is under way, and release the lease for another process."""
        self._ended.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()
        self._publisher.close()

    def _run(self):
        backoff = Backoff()
        while not self._ended.is_set():
            try:
                published = self._relay_some() if self._lead() else 0
                if self.active and not published:
                    self._publisher.idle()
                self._rest(published)
                backoff.reset()
                continue
            except (divergence.StreamAhead, relaying.PositionsLost) as error:
                self._report(str(error))
            except Unconfirmed as error:
                LOG.warning("Events wait for the broker: %s", error)
                # The store may have lost changes meanwhile, without an error of this process.
                self._is_compared = False
                if self.difference is None:
                    self._give_positions()
            except _LeaseLost:
                LOG.info("Another process relays events now")
                self.active, self.difference = False, None
            except exception.PlacementException as error:
                # The next connection may be one to another server.
                self._is_compared = False
                LOG.warning("Events wait for the store: %s", error)
            except Exception:
                LOG.exception("The relay failed; it continues")
            self._ahead = None
            # Events that are committed meanwhile do not shorten the pause.
            self._ended.wait(backoff.next())
        self._release()

    def _report(self, difference):
        """Say that nothing is published, once."""
        if difference != self.difference:
            LOG.error("No events are published, since the store has lost changes: %s. See "
                      "'placement-rpc-manage outbox reconcile'", difference)
        self.difference = difference
        self._is_compared, self._confirmed = False, None

    def _rest(self, published):
        """Wait until the next poll of the outbox.

        :param published: how many events were just published
        """
        if not self.active:
            # Without the lease, commits of this process are no reason to poll.
            self._ended.wait(self._options.lease / 3)
        elif published >= self._options.batch:
            # More of them wait already.
            return
        elif published:
            self._ended.wait(self._options.gather)
        else:
            self._woken.wait(self._options.interval)
        self._woken.clear()

    def _lead(self):
        """Renew the lease when a third of it is over; return whether it is held."""
        if self.active and time.monotonic() < self._renew_at:
            return True
        # After a pause of this process another one may have had the lease meanwhile.
        was_held = self.active and time.monotonic() < self._renew_at + self._options.lease * 2 / 3
        self.active = self._database.write(lambda tx: leases.acquire(
            tx, LEASE, self._holder, self._options.lease, self._watch), "relay")
        self._renew_at = time.monotonic() + self._options.lease / 3
        if not was_held:
            self._is_compared, self._ahead = False, None
        if not self.active:
            self.difference = None
            self._publisher.close()
        return self.active

    def _still_leading(self):
        """Check, while waiting for confirms, that this process still holds the lease.

        :raises _LeaseLost: if the lease is lost, or the relay was stopped
        """
        if self._ended.is_set() or not self._lead():
            raise _LeaseLost

    def _relay_some(self):
        """Publish the next batch; return how many events it has."""
        if not self._is_compared:
            self._compare()
        batch, messages = self._take_ahead()
        if batch is None:
            if self._confirmed is None and self._is_idle():
                return 0
            batch = self._read()
        if batch.rows:
            self._publish(batch, self._messages(batch) if messages is None else messages)
        return len(batch.rows)

    def _take_ahead(self):
        """Return the batch that was read ahead, and its messages.

        Both are None if no batch was read ahead, or if it is too old; the messages alone are None
        if making them failed.
        """
        ahead, self._ahead = self._ahead, None
        return ahead if ahead and time.monotonic() < self._fresh_until else (None, None)

    def _messages(self, batch):
        return self._publisher.messages(payload_pin.all_pinned(batch.rows, self._pin))

    def _is_idle(self):
        # What another node has just committed is found by the next poll.
        with self._database.reader(causal=False) as tx:
            return relaying.is_idle(tx, self._given)

    def _read(self, under_way=None):
        """Mark the batch that was confirmed, and return the next one.

        :param under_way: as of :func:`relaying.next_batch`
        :raises _LeaseLost: if another process has the lease
        """
        batch = self._database.write(lambda tx: relaying.next_batch(
            tx, LEASE, self._holder, self._confirmed, self._options.batch, self._given,
            self._sent if self._publisher.is_kept else 0, under_way), "relay")
        if batch is None:
            raise _LeaseLost
        self._confirmed = None
        if batch.last < self._given:
            LOG.warning("The store has lost changes and their positions after %d, which were not "
                        "published; a new epoch of positions begins", batch.last)
        self._epoch, self._given = batch.epoch, batch.last
        return batch

    def _publish(self, batch, messages):
        rows, last = batch.rows, batch.rows[-1].position
        self._sent = max(self._sent, last)
        with tracing.root("relay", events=len(rows), position=last):
            self._publisher.publish(
                messages, self._still_leading, lambda: self._look_ahead(batch))
        # The batch before it may not be marked yet.
        before = self._confirmed
        follows = before is not None and before[1] == batch.read_from
        self._confirmed = before[0] if follows else batch.read_from, last

    def _look_ahead(self, batch):
        """If a batch is full, read the next one and make its messages.

        The broker confirms the batch meanwhile.
        """
        if len(batch.rows) < self._options.batch or self._ahead is not None:
            return
        # An error does not end the wait for the confirms: the events would be published twice.
        try:
            ahead = self._read((batch.read_from, batch.rows[-1].position))
        except exception.PlacementException as error:
            # The next connection may be one to another server.
            self._is_compared = False
            LOG.info("The next events are read later: %s", error)
        except (relaying.PositionsLost, _LeaseLost):
            # The next read raises it again.
            return
        else:
            if ahead.rows:
                self._ahead, self._fresh_until = (ahead, None), time.monotonic() + _FRESH
                # If it fails, the messages are made again when it is the turn of this batch, and
                # the error is raised then.
                with contextlib.suppress(Exception):
                    self._ahead = ahead, self._messages(ahead)

    def _compare(self):
        """Check that the store has what is in the stream.

        :raises StreamAhead: if it lacks something
        """
        with self._database.reader() as tx:
            state = events.state(tx)
        published = state.published_position if state else 0
        if state and state.epoch != self._epoch:
            self._epoch, self._given, self._sent = state.epoch, 0, 0
        tail = self._publisher.last_events(published)
        with self._database.reader() as tx:
            found = divergence.difference(tx, tail)
        if found:
            raise divergence.StreamAhead(found)
        self._is_compared = True
        if self.difference:
            LOG.info("The store has all that is in the stream: events are published again")
            # What was sent and lost has not reached the stream. Its positions were given, so that
            # a new epoch begins.
            self.difference, self._sent = None, 0
        # From now on the store may lose even what other relays have published.
        self._sent = max(self._sent, published, *(event.position for event in tail))
        self._given = max(self._given, self._sent)

    def _give_positions(self):
        """Give positions to events that cannot be published: HTTP clients read the store."""
        try:
            while not self._ended.is_set() and (given := self._database.write(
                    lambda tx: relaying.give_waiting_positions(
                        tx, LEASE, self._holder, self._options.batch, self._given), "relay")):
                self._given = given
        except relaying.PositionsLost as error:
            self._report(str(error))
        except exception.PlacementException as error:
            LOG.warning("Events wait for the store: %s", error)

    def _release(self):
        """Mark the events that were confirmed, and let another process take over at once."""
        self.active = False
        try:
            self._database.write(self._last, "relay")
        except exception.PlacementException as error:
            LOG.warning("The relay's lease is not released and will expire: %s", error)

    def _last(self, tx):
        if self._confirmed is not None:
            relaying.mark_published(tx, *self._confirmed)
        leases.release(tx, LEASE, self._holder)
