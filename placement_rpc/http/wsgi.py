# SPDX-License-Identifier: Apache-2.0
"""The entry point for WSGI servers: ``placement_rpc.http.wsgi:application``.

The environment variable ``PLACEMENT_RPC_CONF`` names the configuration file; the default is
``/etc/placement-rpc/placement-rpc.conf``. ``PLACEMENT_RPC_CONF_DIR`` names a directory, whose
``*.conf`` are read after that file, in alphabetical order; the default is
``/etc/placement-rpc/placement-rpc.conf.d``.
"""

import os

from oslo_service import backend

# First, since importing oslo.messaging would select the eventlet backend.
backend.init_backend(backend.BackendType.THREADING)

from placement_rpc.conf import facade as configuration  # noqa: E402
from placement_rpc.service import logs, private_files  # noqa: E402
from placement_rpc.service.http import Application  # noqa: E402


def _application():
    arguments = [f"{option}={os.environ[name]}" for option, name in (
        ("--config-file", "PLACEMENT_RPC_CONF"), ("--config-dir", "PLACEMENT_RPC_CONF_DIR"))
        if os.environ.get(name)]
    conf = configuration.new_config(arguments)
    with private_files.owner_only():
        logs.setup(conf)
    return Application(conf)


application = _application()
