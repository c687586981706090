# SPDX-License-Identifier: Apache-2.0
"""Gauges of a conductor that are collected on each Prometheus scrape."""

import collections
import datetime
import logging

from placement_rpc import exception
from placement_rpc.db.queries import bulk, events, services

LOG = logging.getLogger(__name__)


def state(database, index, servers, relay, down_time):
    """Yield the gauges, as :meth:`placement_rpc.telemetry.metrics.Metrics.watch` reads them.

    :param database: :class:`placement_rpc.db.api.Database`
    :param index: :class:`placement_rpc.candidates.live_index.LiveIndex`
    :param servers: dict of queue name, the label ``queue``, to its server
    :param relay: :class:`placement_rpc.notifications.relay.Relay`
    :param down_time: int, seconds without a heartbeat after which a process counts as down
    """
    yield ("queue_calls", "Calls being processed or waiting in a worker, by request queue", {
        (("queue", name),): server.busy for name, server in servers.items()})
    yield ("queue_slots", "Maximum number of calls that a worker holds, by request queue", {
        (("queue", name),): server.places for name, server in servers.items()})
    in_use, most = database.connections()
    yield ("database_connections", "Database connections in use", {(): in_use})
    yield ("database_connections_max", "Maximum number of database connections", {(): most})
    figures = index.statistics()
    for name, text in (
            ("providers", "Providers in the candidate index"),
            ("inventories", "Inventories in the candidate index"),
            ("bytes", "Memory of the candidate index in bytes"),
            ("position", "Position of the last event that the candidate index includes"),
            ("age_seconds", "Seconds since the candidate index was last brought up to date"),
            ("made", "Number of times that a candidate index was built"),
            ("applied", "Number of events applied to the candidate index")):
        if name in figures:
            yield (f"index_{name}", text, {(): figures[name]})
    yield ("outbox_diverged", "Whether the relay of this process publishes nothing, since the "
           "store has lost events that were published", {(): int(relay.difference is not None)})
    yield from _stored(database, down_time)


def _stored(database, down_time):
    try:
        with database.reader(causal=False) as tx:
            unsent, oldest = events.lag(tx)
            processes = services.everyone(tx)
    except exception.PlacementException as error:
        LOG.warning("Cannot read the outbox and the heartbeats for their metrics: %s", error)
        return
    yield ("outbox_unsent", "Events that the broker has not confirmed yet", {(): unsent})
    yield ("outbox_oldest_unsent_seconds", "Age of the oldest unconfirmed event in seconds", {
        (): (bulk.now() - oldest).total_seconds() if oldest else 0})
    since = bulk.now() - datetime.timedelta(seconds=down_time)
    for name, text, is_alive in (
            ("services_up", "Processes with a recent heartbeat", True),
            ("services_down", "Processes whose heartbeat is older than service_down_time", False)):
        # A program all of whose processes are in the other state has a zero.
        counts = collections.Counter({row.binary: 0 for row in processes})
        counts.update(row.binary for row in processes if (row.last_seen_at >= since) is is_alive)
        yield (name, f"{text}, by program", {
            (("binary", binary),): count for binary, count in sorted(counts.items())})
