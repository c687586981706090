# SPDX-License-Identifier: Apache-2.0
"""Files that only their owner may read: logs and databases name users, projects and requests."""

import contextlib
import os
import pathlib


@contextlib.contextmanager
def owner_only():
    """Give files that are created meanwhile no permissions for other users; also a decorator.

    It holds for the whole process, so that it covers files that libraries create, such as those
    of a log after its rotation.
    """
    former = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(former)


def tighten(directory, *names):
    """Take the permissions of other users from files; those that do not exist are ignored.

    :param directory: str or path
    :param names: str each, of files in it
    """
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            pathlib.Path(directory, name).chmod(0o600)
