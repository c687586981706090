# SPDX-License-Identifier: Apache-2.0
"""The entry point for WSGI servers: ``placement_rpc.http.wsgi:application``.

The environment variable ``PLACEMENT_RPC_CONF`` names the configuration file; the default is
``/etc/placement-rpc/placement-rpc.conf``.
"""

import os

from oslo_log import log
from oslo_service import backend

# First, since importing oslo.messaging would select the eventlet backend.
backend.init_backend(backend.BackendType.THREADING)

from placement_rpc.conf import service as configuration  # noqa: E402
from placement_rpc.service import private_files  # noqa: E402
from placement_rpc.service.http import Application  # noqa: E402


def _application():
    named = os.environ.get("PLACEMENT_RPC_CONF")
    conf = configuration.new_config(config_files=[named] if named else None)
    with private_files.owner_only():
        log.setup(conf, configuration.PROJECT)
    return Application(conf)


application = _application()
