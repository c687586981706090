# SPDX-License-Identifier: Apache-2.0
"""What the tests of the files in ``etc/`` for other programs share."""

import subprocess

from tests import base

CONDUCTOR = "systemd/placement-rpc-conductor.service"
API = "systemd/placement-rpc-api.service"
UWSGI = "systemd/placement-rpc-api.service.d/uwsgi.conf"
ADDRESS = "0.0.0.0:8778"


def run(*command, **how):
    """Run a program; return :class:`subprocess.CompletedProcess` with its whole output."""
    return subprocess.run(command, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **how)


def configured(**groups):
    """Return a configuration file with options by group."""
    return "".join(f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in each.items())
                   for group, each in groups.items())


class DeploymentCase(base.TestCase):
    """A test that starts the programs of a deployment."""

    # Of a machine that runs much else, on which a program takes seconds to start.
    time_limit = 300
