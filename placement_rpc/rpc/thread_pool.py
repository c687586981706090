# SPDX-License-Identifier: Apache-2.0
"""A pool whose threads are there from the start.

The threads of :class:`concurrent.futures.ThreadPoolExecutor` start when they are needed. If the
system has no room for one by then, the function is queued, its caller gets an error all the same,
and the pool has one thread less from then on.
"""

import concurrent.futures
import threading


def thread_pool(threads: int, name: str) -> concurrent.futures.ThreadPoolExecutor:
    """Return a pool, all of whose threads are started.

    :param threads: how many functions run at a time; others wait
    :param name: prefix of the names of the threads
    :raises RuntimeError: if they cannot be started
    """
    pool = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix=name)
    # Each occupies a thread until all of them are there.
    all_there = threading.Barrier(threads)
    try:
        for _ in range(threads):
            pool.submit(all_there.wait)
    except RuntimeError:
        all_there.abort()
        pool.shutdown(wait=False)
        raise
    return pool
