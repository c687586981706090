# SPDX-License-Identifier: Apache-2.0
"""What the nodes of a broker do when they lose sight of each other, as rabbitmqctl knows it.

RabbitMQ's management interface does not say. On a machine of the broker, rabbitmqctl does, to an
account that may read the cookie of the nodes.
"""

import re
import subprocess

# Seconds that an answer may take.
_TIMEOUT = 30
_OPTION = "application:get_env(rabbit, cluster_partition_handling)."
_ANSWER = re.compile(r"\{ok,\s*\{?(\w+)")


def of_node(name):
    """Return ``cluster_partition_handling`` of a node, str; None if it cannot be found out.

    :param name: str, as of the management interface
    """
    try:
        # The name is the broker's, and is passed as one argument.
        done = subprocess.run(  # noqa: S603
            ["rabbitmqctl", "-q", "-n", name, "eval", _OPTION],  # noqa: S607
            check=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT)
    except (OSError, subprocess.SubprocessError):
        return None
    found = _ANSWER.match(done.stdout)
    return found and found[1]
