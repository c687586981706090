# SPDX-License-Identifier: Apache-2.0
"""Options of transactions on PostgreSQL and MariaDB: how long they wait, and may be idle.

A worker that is stopped or cut off in the middle of a transaction keeps its row locks until the
database server ends its session. These limits are short against the deadline of a call, so that
other workers take over while the client waits.
"""

from oslo_config import cfg

GROUP = cfg.OptGroup("transactions", title="Limits of transactions on PostgreSQL and MariaDB")

OPTS = [
    cfg.FloatOpt(
        "lock_timeout", default=0.25, min=0.01,
        help="Seconds that a statement waits for a row that another transaction has locked. After "
             "that a batch of claims is settled without the claims that need the row, which are "
             "retried. A higher number lets one locked provider delay the claims on others for "
             "longer; a lower one makes more retries under contention. MariaDB rounds it up to "
             "whole seconds, except where a batch locks its rows."),
    cfg.FloatOpt(
        "idle_timeout", default=2.0, min=0.1,
        help="Seconds that a transaction may be without a statement. After that the database "
             "server ends the session and releases its locks, for example those of a worker that "
             "was stopped or whose machine lost its power; the client's retry is settled by "
             "another worker. A higher number keeps such locks for longer; a lower one ends "
             "transactions of a worker that is only slow. MariaDB rounds it up to whole seconds."),
    cfg.FloatOpt(
        "peer_timeout", default=10.0, min=1.0,
        help="Seconds without an answer of the other machine after which a TCP connection to the "
             "database is given up. A higher number tolerates longer interruptions of the "
             "network, and a worker notices later that the database's machine has vanished."),
]
