# SPDX-License-Identifier: Apache-2.0
"""How a conductor is, as it is read when somebody scrapes its metrics."""

import logging

from placement_rpc import exception
from placement_rpc.db.queries import bulk, events

LOG = logging.getLogger(__name__)


def state(database, candidates, servers):
    """What there is to tell; see :meth:`placement_rpc.telemetry.metrics.Metrics.watch`.

    :param database: :class:`placement_rpc.db.api.Database`
    :param candidates: of :mod:`placement_rpc.candidates.search`
    :param servers: dict of intake to its server
    """
    yield ("intake_calls", "Calls that are worked on, by intake", {
        (("intake", name),): server.busy for name, server in servers.items()})
    yield ("intake_places", "Calls that can be worked on at a time, by intake", {
        (("intake", name),): server.places for name, server in servers.items()})
    pool = database.engine.pool
    yield ("database_connections", "Connections of the pool that are in use", {
        (): pool.checkedout()})
    yield ("database_connections_max", "Connections that the pool may have", {
        (): pool.size() + max(0, pool._max_overflow)})
    index = candidates.statistics()
    for name, text in (
            ("providers", "Providers in the candidate index"),
            ("inventories", "Inventories in the candidate index"),
            ("bytes", "Memory of the candidate index"),
            ("position", "Position up to which the candidate index has all events"),
            ("age_seconds", "Since when the candidate index was not brought up to date"),
            ("made", "How often a candidate index was made"),
            ("applied", "Events that the candidate index was brought up to date with")):
        if name in index:
            yield (f"index_{name}", text, {(): index[name]})
    yield from _outbox(database)


def _outbox(database):
    try:
        with database.reader() as tx:
            unsent, oldest = events.lag(tx)
    except exception.PlacementException as error:
        LOG.warning("The outbox's lag can not be told: %s", error)
        return
    yield ("outbox_unsent", "Events that the broker has not confirmed yet", {(): unsent})
    yield ("outbox_oldest_unsent_seconds", "How long the oldest of them waits", {
        (): (bulk.now() - oldest).total_seconds() if oldest else 0})
