# SPDX-License-Identifier: Apache-2.0
"""The bus of a command: what it needs, and what to say if there is none."""

from oslo_config import cfg

from placement_rpc import exception
from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import state_file


def check(conf: cfg.ConfigOpts) -> None:
    """Check that a bus is configured, or was found in the state directory.

    Otherwise oslo.messaging's default would be used: a broker on this machine, which may be that
    of another service.

    :raises ServiceUnavailable: if there is none
    """
    if conf.transport_url == state_file.NO_BUS:
        raise exception.ServiceUnavailable(
            reason="no transport_url is configured, and no service on the state directory "
                   f"{conf.standalone.state_dir!r} has one for this command; set one, or name the "
                   "directory of a running service with --state-dir")


def needed(conf: cfg.ConfigOpts, why: str) -> Broker:
    """Return the broker of a configuration, for what no other bus can do.

    :param why: what only RabbitMQ can do, as a sentence without its end
    :raises ServiceUnavailable: if no bus is configured
    :raises InvalidInput: as :meth:`placement_rpc.amqp.broker.Broker.of`, and if the bus is not
        RabbitMQ
    """
    check(conf)
    found = Broker.of(conf)
    if found is None:
        raise exception.InvalidInput(what="transport_url", reason=f"{why}; give its address")
    return found
