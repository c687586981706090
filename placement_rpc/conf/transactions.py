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
    cfg.BoolOpt(
        "causal_reads", default=True,
        help="Whether a transaction on a node of a MariaDB Galera cluster first waits until the "
             "node has applied all changes that were committed before on the other nodes. That "
             "takes an answer of another node for each transaction. It can be off if all "
             "processes of the service use the same node: a client may then read what is out of "
             "date for a moment when another node takes over. Transactions that are retried after "
             "a conflict always wait. Other databases ignore it."),
    cfg.FloatOpt(
        "answer_timeout", default=10.0, min=1.0,
        help="Seconds without an answer after which a database server is asked, on another "
             "connection, whether it still executes the statement. If it does, it has as many "
             "seconds more; otherwise, and if it does not answer that either, the connection is "
             "given up. It is also given up if the statement waits for another node or for the "
             "lock of a table. mysqldb cannot ask: it gives up each statement that takes as "
             "long. A higher number makes calls wait longer for a server that is frozen."),
]
