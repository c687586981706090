# SPDX-License-Identifier: Apache-2.0
"""The commands of ``placement-rpc`` that read the stream of events."""

import functools

from placement_rpc import api, bodies, exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import listen, output, provider_names, usage_report
from placement_rpc.notifications.stream import StreamReader


def run(options, conf, url):
    """Run the command that the options name.

    :param options: the parsed arguments
    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param url: str, the transport URL
    :returns: int, the exit code
    :raises ServiceUnavailable: if the bus is not RabbitMQ
    """
    broker = Broker.of(conf, url)
    if broker is None:
        raise exception.ServiceUnavailable(
            reason="only RabbitMQ has a stream of events; give its address with --transport-url")
    reader = functools.partial(StreamReader, broker, conf.notifications.stream,
                               limits=bodies.Limits.of_answers(conf))
    if options.command == "listen" and output.style_of(options.format) != "table":
        return listen.run(reader, options)
    with api.PlacementAPI(conf=conf, transport_url=url) as client:
        if options.command == "listen":
            return listen.run(reader, options, provider_names.ProviderNames(client))
        return usage_report.from_stream(
            reader, options, 2 * conf.notifications.snapshot_period, client)
