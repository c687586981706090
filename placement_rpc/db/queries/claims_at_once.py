# SPDX-License-Identifier: Apache-2.0
"""Everything that a batch of claims writes, in one statement; PostgreSQL alone can.

Six statements in one are less work for the process that sends them and for the server that reads
them. What consumers held before has to be deleted by then: a statement does not see what it
deletes itself.
"""

import sqlalchemy as sa

from placement_rpc.db.queries import bulk

# Each given table: its columns, with the types of those that are no text.
_GIVEN = {
    "consumers": {"uuid": "", "project_id": "", "user_id": "", "generation": "bigint"},
    "allocations": {"consumer_id": "bigint", "uuid": "", "provider_id": "bigint",
                    "class_id": "integer", "used": "integer"},
    "used": {"id": "bigint", "used": "bigint"},
    "generations": {"id": "bigint", "old": "bigint", "new": "bigint"},
    "events": {"event_id": "", "event_type": "", "occurred_at": "timestamp", "payload": "",
               "touched": ""},
    "requests": {"request_id": "", "method": "", "fingerprint": "", "outcome": ""},
}


def _given(table):
    """A table of what is given: numbers as the text of an array, texts joined, which costs the
    driver a hundredth of writing them down as arrays."""
    columns = _GIVEN[table]
    arrays = ", ".join(
        f"CAST(CAST(:{table}_{name} AS text) AS {kind}[])" if kind else
        # Before each text is a separator, so that one empty text is not none.
        f"(string_to_array(CAST(:{table}_{name} AS text), chr({ord(bulk.SEPARATOR)})))[2:]"
        for name, kind in columns.items())
    return f"unnest({arrays}) AS given({', '.join(columns)})"


_NOW = "CAST(:now AS timestamp)"
_WRITE = sa.text(f"""
WITH made AS (
    INSERT INTO consumers (uuid, project_id, user_id, generation, created_at, updated_at)
    SELECT uuid, project_id, user_id, generation, {_NOW}, {_NOW} FROM {_given("consumers")}
    RETURNING id, uuid
), held AS (
    INSERT INTO allocations (consumer_id, resource_provider_id, resource_class_id, used,
                             created_at, updated_at)
    SELECT COALESCE(given.consumer_id, made.id), provider_id, class_id, used, {_NOW}, {_NOW}
    FROM {_given("allocations")} LEFT JOIN made ON made.uuid = given.uuid
), taken AS (
    UPDATE inventories AS changed SET used = given.used, updated_at = {_NOW}
    FROM {_given("used")} WHERE changed.id = given.id
), moved AS (
    UPDATE resource_providers AS changed SET generation = given.new, updated_at = {_NOW}
    FROM {_given("generations")} WHERE changed.id = given.id AND changed.generation = given.old
    RETURNING changed.id
), told AS (
    INSERT INTO events (event_id, event_type, occurred_at, payload, touched)
    SELECT event_id, event_type, occurred_at, payload, touched FROM {_given("events")}
), kept AS (
    INSERT INTO requests (request_id, method, fingerprint, outcome, created_at)
    SELECT request_id, method, fingerprint, outcome, {_NOW} FROM {_given("requests")}
)
SELECT count(*) FROM moved""")  # noqa: S608


def parameters(tables):
    """What the statement is run with.

    :param tables: dict of table to list of tuples, as of :data:`_GIVEN`
    :returns: dict of names to values; None where a text has in it what separates them
    """
    found = {}
    for table, columns in _GIVEN.items():
        values = zip(*tables[table], strict=True) if tables[table] else ((),) * len(columns)
        for (name, kind), each in zip(columns.items(), values, strict=True):
            if kind:
                found[f"{table}_{name}"] = _array(each)
            else:
                joined = "".join(bulk.SEPARATOR + text for text in each)
                if joined.count(bulk.SEPARATOR) != len(each):
                    return None
                found[f"{table}_{name}"] = joined
    return found


def _array(values):
    # Whole numbers, times and nothing at all.
    texts = ("NULL" if each is None else f'"{each}"' for each in values)
    return f"{{{','.join(texts)}}}"


def write(tx, parameters):
    """Run it.

    :param parameters: as :func:`parameters` made them
    :returns: int, how many providers had the generation that they were to have
    :raises oslo_db.exception.DBDuplicateEntry: when another writer was faster
    """
    return tx.execute(_WRITE, {**parameters, "now": bulk.now()}).scalar()
