# SPDX-License-Identifier: Apache-2.0
"""Pages of the consumers of one provider, which most consumers of the store may use."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk
from tests import base

_CONSUMERS = 4000


def uuid_of(number):
    """Return the uuid of a consumer; uuids ascend with the numbers."""
    return f"{number:08x}-0000-4000-8000-000000000000"


class ConsumersOfPoolTest(base.ContractTest):
    """A store with many consumers, and providers that some of them use."""

    everyone = range(1, _CONSUMERS + 1)

    def setUp(self):
        super().setUp()
        self.database = self.service.database
        now = {"created_at": bulk.now(), "updated_at": bulk.now()}
        with self.database.writer() as tx:
            tx.execute(sa.insert(models.consumers), [
                {"id": number, "uuid": uuid_of(number), "user_id": "u", "generation": 1,
                 "project_id": f"p{number % 2}", **now} for number in self.everyone])

    def pool(self, numbers):
        """Create a provider that the consumers of some numbers use; return its uuid."""
        pool, held = self.provider(DISK_GB=10 ** 6), models.inventories
        now = {"created_at": bulk.now(), "updated_at": bulk.now()}
        with self.database.writer() as tx:
            its = tx.execute(sa.select(
                held.c.resource_provider_id, held.c.resource_class_id,
            ).join_from(held, models.resource_providers).where(
                models.resource_providers.c.uuid == pool)).one()
            tx.execute(sa.insert(models.allocations), [
                {"consumer_id": number, "used": 1, **its._mapping, **now} for number in numbers])
        return pool

    def numbers(self, pool, limit, **conditions):
        """Return the numbers of the consumers of all pages."""
        return [int(each.uuid[:8], 16) for each in self.api.all_consumers(
            None, page=limit, provider_uuid=pool, **conditions)]

    def test_each_consumer_of_the_provider_is_in_one_page(self):
        few, late = list(self.everyone[18::100]), list(self.everyone[-1300:])
        some = [each for each in self.everyone if not each % 13 or each > 3000]
        for wanted in (list(self.everyone), few, late, some):
            pool = self.pool(wanted)
            for limit in (300, 1000):
                self.assertEqual(wanted, self.numbers(pool, limit))
            self.assertEqual([each for each in wanted if each % 2],
                             self.numbers(pool, 1000, project_id="p1"))
            self.assertEqual([], self.numbers(pool, 10, user_id="nobody"))
