# SPDX-License-Identifier: Apache-2.0
"""Explain on standard error why a call has no answer yet."""

import contextlib
import socket
import sys
import threading

from placement_rpc.amqp.broker import Broker

# Seconds without an answer after which something is said, and for which a node is tried then: an
# operator knows within five seconds, also of a cluster of three nodes, what is wrong.
_SILENCE = 2
_TRY = 1


@contextlib.contextmanager
def explained(program, conf, url, seconds):
    """Say on standard error why a block takes long, and until when it goes on.

    :param program: str, the name at the beginning of the line
    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param url: str, the transport URL
    :param seconds: float, the time limit of a call in the block
    """
    broker = Broker.of(conf, url)
    ended = threading.Event()

    def explain():
        if ended.wait(_SILENCE) or broker is None:
            return
        nodes = ", ".join(_state(node) for node in broker.nodes)
        if not ended.is_set():
            print(f"{program}: no answer yet: {nodes}; it is tried again until {seconds:g} s "
                  "have passed", file=sys.stderr, flush=True)

    threading.Thread(target=explain, name="silence", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _state(node):
    """Return in words whether a node of the broker accepts connections."""
    try:
        socket.create_connection((node.host, node.port), timeout=_TRY).close()
    except OSError as error:
        return f"{node.address} cannot be reached ({error})"
    return f"{node.address} accepts connections"
