# SPDX-License-Identifier: Apache-2.0
"""Confirmed publishing to a stream by the AMQP library alone: the floor of what a relay takes."""

import collections

import amqp

# Seconds to wait for a confirm.
_PATIENCE = 60


def publish(address, bodies, limit, name="bare.stream"):
    """Publish messages, as the relay publishes events, and wait for all confirms.

    :param address: dict of what :class:`amqp.Connection` takes
    :param bodies: list of str
    :param limit: how many are sent before it waits for their confirms
    :param name: of the stream, and of an exchange for it alone
    """
    with amqp.Connection(**address) as connection:
        channel = connection.channel()
        channel.exchange_declare(name, "topic", durable=True, auto_delete=False)
        channel.queue_declare(name, durable=True, auto_delete=False, arguments={
            "x-queue-type": "stream"})
        channel.queue_bind(name, name, "events.info")
        channel.confirm_select()
        # The last tag: a stream confirms in order.
        confirmed = collections.deque([0], maxlen=1)
        channel.events["basic_ack"].add(lambda tag, multiple: confirmed.append(tag))
        for start in range(0, len(bodies), limit):
            batch = bodies[start:start + limit]
            for body in batch:
                channel.basic_publish(amqp.Message(
                    body, content_type="application/json", delivery_mode=2), name,
                    "events.info", mandatory=True)
            while confirmed[0] < start + len(batch):
                connection.drain_events(timeout=_PATIENCE)
