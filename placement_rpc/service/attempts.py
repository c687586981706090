# SPDX-License-Identifier: Apache-2.0
"""Attempts at messages that were delivered again, counted in the database.

The broker counts deliveries of everything that a killed process held. What is counted here are
attempts at one message, so that a message that ends processes counts against itself only.
"""

import hashlib

from placement_rpc.amqp import dead_letters
from placement_rpc.db.queries import commands as queries


class Attempts:
    """Counts attempts, across processes.

    :param database: :class:`placement_rpc.db.api.Database`
    """

    def __init__(self, database):
        self._database = database

    @staticmethod
    def id_of(message):
        """Return the id under which attempts at a message are counted.

        The message is not read for it. The attempts at one that an operator replayed are counted
        from zero.
        """
        return dead_letters.replay_of(message) or hashlib.sha256(message.body or b"").hexdigest()

    def begin(self, counted):
        """Record that an attempt begins.

        :param counted: str, of :func:`id_of`
        :returns: int, the number of attempts including this one
        :raises PlacementException: if the database cannot be written
        """
        return self._database.write(
            lambda tx: queries.count_attempt(tx, counted), "attempt")

    def survived(self, counted):
        """Record that the process survived the attempts so far.

        :raises PlacementException: if the database cannot be written
        """
        self._database.write(lambda tx: queries.forget_attempts(tx, counted), "attempt")
