# SPDX-License-Identifier: Apache-2.0
"""What a page of the consumers of one provider costs on SQLite."""

import sqlalchemy as sa

from tests.functional import test_consumers_of_pool
from tests.functional.test_consumers_of_pool import uuid_of

# The instructions of SQLite between two calls of its progress handler.
_STEP = 100


class PoolPageWorkTest(test_consumers_of_pool.ConsumersOfPoolTest):
    """Counts what SQLite does for a page, in hundreds of its instructions."""

    scenarios = []
    # The pages themselves are tested above, on all databases.
    test_each_consumer_of_the_provider_is_in_one_page = None

    def work(self, **conditions):
        """Return the numbers of a page's consumers, and what it costs."""
        engine, done = self.database.engine, []

        def count(_connection, cursor, *_rest):
            cursor.connection.set_progress_handler(lambda: done.append(1), _STEP)

        sa.event.listen(engine, "before_cursor_execute", count)
        try:
            page = self.api.list_consumers(None, **conditions)
        finally:
            sa.event.remove(engine, "before_cursor_execute", count)
        return [int(each.uuid[:8], 16) for each in page.objects], len(done)

    def test_a_page_of_a_pool_costs_what_it_shows(self):
        pool = self.pool(self.everyone)
        of_all = self.work(limit=10)[1]
        for start in (0, 2000):
            found, work = self.work(provider_uuid=pool, limit=10, marker=uuid_of(start))
            self.assertEqual(list(self.everyone[start:start + 10]), found)
            # More than the page are the 1,000 consumers of the smallest range. To read the whole
            # pool takes some 1,100.
            self.assertLess(work, of_all + 200)

    def test_a_provider_of_few_consumers_is_read_itself(self):
        numbers = list(self.everyone[18::200])
        found, work = self.work(provider_uuid=self.pool(numbers), limit=1000)
        self.assertEqual(numbers, found)
        self.assertLess(work, 4 * self.work(limit=len(numbers))[1])
