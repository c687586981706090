# SPDX-License-Identifier: Apache-2.0
"""Confirmed publishing to a stream by the AMQP library alone: the floor of what a relay takes."""

import amqp

# As many messages as the relay sends before it waits for the confirms.
_BATCH = 500
# Seconds to wait for a confirm.
_PATIENCE = 60
_EXCHANGE, _STREAM = "bare", "bare.stream"


def publish(address, bodies):
    """Publish messages, as the relay publishes events, and wait for all confirms.

    :param address: dict of what :class:`amqp.Connection` takes
    :param bodies: list of str
    """
    with amqp.Connection(**address) as connection:
        channel = connection.channel()
        channel.exchange_declare(_EXCHANGE, "topic", durable=True, auto_delete=False)
        channel.queue_declare(_STREAM, durable=True, auto_delete=False, arguments={
            "x-queue-type": "stream"})
        channel.queue_bind(_STREAM, _EXCHANGE, "events.info")
        channel.confirm_select()
        confirmed = [0]
        channel.events["basic_ack"].add(lambda tag, multiple: confirmed.append(tag))
        for start in range(0, len(bodies), _BATCH):
            batch = bodies[start:start + _BATCH]
            for body in batch:
                channel.basic_publish(amqp.Message(
                    body, content_type="application/json", delivery_mode=2), _EXCHANGE,
                    "events.info", mandatory=True)
            # A stream confirms in order.
            while max(confirmed) < start + len(batch):
                connection.drain_events(timeout=_PATIENCE)
            confirmed[:] = confirmed[-1:]
