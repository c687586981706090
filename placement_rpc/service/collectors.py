# SPDX-License-Identifier: Apache-2.0
"""Gauges of a conductor that are collected on each Prometheus scrape."""

import logging

from placement_rpc import exception
from placement_rpc.db.queries import bulk, events

LOG = logging.getLogger(__name__)


def state(database, index, servers):
    """Yield the gauges, as :meth:`placement_rpc.telemetry.metrics.Metrics.watch` reads them.

    :param database: :class:`placement_rpc.db.api.Database`
    :param index: :class:`placement_rpc.candidates.live_index.LiveIndex`
    :param servers: dict of queue name, the label ``queue``, to its server
    """
    yield ("queue_calls", "Calls being processed, by request queue", {
        (("queue", name),): server.busy for name, server in servers.items()})
    yield ("queue_slots", "Maximum number of calls processed at a time, by request queue", {
        (("queue", name),): server.places for name, server in servers.items()})
    pool = database.engine.pool
    yield ("database_connections", "Database connections in use", {
        (): pool.checkedout()})
    yield ("database_connections_max", "Maximum number of database connections", {
        (): pool.size() + max(0, pool._max_overflow)})
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
    yield from _outbox(database)


def _outbox(database):
    try:
        with database.reader() as tx:
            unsent, oldest = events.lag(tx)
    except exception.PlacementException as error:
        LOG.warning("Cannot read the outbox for its metrics: %s", error)
        return
    yield ("outbox_unsent", "Events that the broker has not confirmed yet", {(): unsent})
    yield ("outbox_oldest_unsent_seconds", "Age of the oldest unconfirmed event in seconds", {
        (): (bulk.now() - oldest).total_seconds() if oldest else 0})
