# SPDX-License-Identifier: Apache-2.0
"""A function that locks and reads what a batch of changes concerns. It only adds.

The function exists on PostgreSQL only; :mod:`placement_rpc.db.queries.locked_reads` calls it. To
create it takes no lock that other transactions need, and older releases do not call it.

Later revisions must not change its parameters or its result: conductors of this release may still
call it. A function that differs needs another name.

The function is volatile, so that each of its statements sees all that was committed before that
statement began, including what was committed while the statement before it waited for a lock.

Revision: 0011
Revises: 0010
"""

from placement_rpc.db.migrations import online

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# The result is JSON as text; locked_reads parses it. The hold is read before the outcomes: if the
# store is held, the outcomes of all requests that were settled before that are found.
LOCK_AND_READ = """
CREATE OR REPLACE FUNCTION lock_and_read(
    wanted_requests varchar[], wanted_consumers varchar[], wanted_providers varchar[])
RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    hold_reason text;
    found_requests json;
    found_consumers json;
    consumer_ids bigint[];
    found_held json;
    held_providers varchar[];
    found_providers json;
    provider_ids bigint[];
    found_inventories json;
BEGIN
    IF cardinality(wanted_requests) > 0 THEN
        SELECT coalesce(h.reason, '') INTO hold_reason FROM store_hold h
            WHERE h.id = 1 AND h.held_since IS NOT NULL;
        SELECT json_agg(json_build_array(
                r.request_id, r.method, r.fingerprint, r.outcome)) INTO found_requests
            FROM requests r WHERE r.request_id = ANY (wanted_requests);
        IF hold_reason IS NOT NULL OR found_requests IS NOT NULL THEN
            RETURN json_build_array(found_requests, hold_reason, NULL, NULL, NULL, NULL);
        END IF;
    END IF;
    IF cardinality(wanted_consumers) > 0 THEN
        SELECT json_agg(json_build_array(
                locked.id, locked.uuid, locked.generation, locked.project_id, locked.user_id,
                locked.created_at, locked.updated_at, locked.consumer_type_id)),
                array_agg(locked.id)
            INTO found_consumers, consumer_ids
            FROM (SELECT c.* FROM consumers c WHERE c.uuid = ANY (wanted_consumers)
                ORDER BY c.uuid FOR UPDATE) AS locked;
    END IF;
    IF consumer_ids IS NOT NULL THEN
        SELECT json_agg(json_build_array(
                a.consumer_id, a.resource_provider_id, a.resource_class_id, a.used)),
                array_agg(DISTINCT p.uuid)
            INTO found_held, held_providers
            FROM allocations a JOIN resource_providers p ON p.id = a.resource_provider_id
            WHERE a.consumer_id = ANY (consumer_ids);
        wanted_providers := wanted_providers || held_providers;
    END IF;
    IF cardinality(wanted_providers) > 0 THEN
        SELECT json_agg(json_build_array(locked.id, locked.uuid, locked.generation)),
                array_agg(locked.id)
            INTO found_providers, provider_ids
            FROM (SELECT p.id, p.uuid, p.generation FROM resource_providers p
                WHERE p.uuid = ANY (wanted_providers) ORDER BY p.uuid FOR UPDATE) AS locked;
    END IF;
    IF provider_ids IS NOT NULL THEN
        SELECT json_agg(json_build_array(
                i.id, i.resource_provider_id, i.resource_class_id, i.used, i.total, i.reserved,
                i.min_unit, i.max_unit, i.step_size, i.allocation_ratio, i.capacity))
            INTO found_inventories
            FROM inventories i WHERE i.resource_provider_id = ANY (provider_ids);
    END IF;
    RETURN json_build_array(
        NULL, NULL, found_consumers, found_held, found_providers, found_inventories);
END $$
"""


def upgrade():
    online.run(postgresql=LOCK_AND_READ)
