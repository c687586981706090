# SPDX-License-Identifier: Apache-2.0
"""Fixtures that start at the same time."""

from concurrent import futures


def set_up(fixture, others):
    """Set up other fixtures in threads; they are cleaned up with the first.

    :param fixture: :class:`fixtures.Fixture` that is being set up
    :param others: list of :class:`fixtures.Fixture`
    """
    with futures.ThreadPoolExecutor(len(others)) as threads:
        begun = [threads.submit(each.setUp) for each in others]
    for each, begin in zip(others, begun, strict=True):
        if begin.exception() is None:
            fixture.addCleanup(each.cleanUp)
    for begin in begun:
        begin.result()
