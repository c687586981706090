# SPDX-License-Identifier: Apache-2.0
"""The programs, and the choice of oslo.service's backend before any other import."""

import os

from oslo_service import backend

# Importing oslo.messaging selects a backend, by default that of eventlet. The hook selects the
# other one at that moment: a program that only prints its help loads neither.
backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
# Libraries that do not need eventlet import it if it is installed, and it imports a resolver of
# names, for a quarter of a second, unless it is told not to.
os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
