# SPDX-License-Identifier: Apache-2.0
"""Reports to systemd that a program with worker processes is ready."""

import os

from oslo_service import systemd

_NAME = "NOTIFY_SOCKET"


class Readiness:
    """Reports to systemd that the service is ready (``Type=notify``), from any worker.

    Made before the workers are: cotyledon and gunicorn would report readiness as soon as they have
    forked them, and workers answer calls only seconds later.
    """

    def __init__(self):
        self._socket = os.environ.pop(_NAME, None)

    def report(self):
        """Report readiness; without a service manager, do nothing."""
        if self._socket is not None:
            os.environ[_NAME] = self._socket
            systemd.notify_once()
