# SPDX-License-Identifier: Apache-2.0
"""What each option of ``[oslo_messaging_rabbit]`` means for connections of this project.

The library registers these options, and operators set them for all services of a cloud. Each one
is honoured, refused at the start if it asks for something that would not be done, or without
meaning here. A unit test compares the tables with the options that the installed library has, so
an option that is new there has to be decided here.
"""

from oslo_config import cfg
from oslo_messaging._drivers import common

from placement_rpc import bodies, exception

GROUP = "oslo_messaging_rabbit"
#: The options that have an effect, and what it is.
HONOURED = {
    "ssl": "Connections are encrypted.",
    "ssl_version": "The version of TLS, and no other one: TLSv1, TLSv1_1 or TLSv1_2. SSLv23, as "
                   "no value, stands for the newest version that both ends have.",
    "ssl_key_file": "The key of ssl_cert_file; not needed if that file contains it.",
    "ssl_cert_file": "The client's certificate, which is sent with or without ssl_ca_file.",
    "ssl_ca_file": "The authorities that may sign the broker's certificate; without it, those of "
                   "the operating system.",
    "ssl_enforce_hostname_verification": "If false, as [broker] check_hostname = false.",
    "kombu_compression": "The compression of the calls that a client sends.",
    "rabbit_login_method": "The mechanism by which a client logs in: AMQPLAIN, PLAIN or EXTERNAL.",
    "rabbit_interval_max": "The longest pause between two attempts to connect, in seconds.",
    "rabbit_ha_queues": "The x-ha-policy of request queues that are not quorum queues.",
    "rabbit_quorum_queue": "The type of the request queues.",
    "rabbit_transient_quorum_queue": "The type of the reply queues.",
    "rabbit_quorum_delivery_limit": "The limit of request queues that are quorum queues.",
    "rabbit_quorum_max_memory_length": "The limit of request queues that are quorum queues.",
    "rabbit_quorum_max_memory_bytes": "The limit of request queues that are quorum queues.",
    "rabbit_transient_queues_ttl": "The seconds after which an unused reply queue is deleted.",
    "heartbeat_timeout_threshold": "The heartbeat that is negotiated with the broker, in seconds. "
                                   "A program leaves a node from which nothing came for one and a "
                                   "half times as long; the broker closes a connection on which "
                                   "nothing came for twice as long or more. 0 switches heartbeats "
                                   "off.",
    "enable_cancel_on_failover": "Consumers of request and reply queues are cancelled, and start "
                                 "again, when a mirrored queue fails over.",
    "amqp_durable_queues": "Whether the exchange and the request queues are durable; they always "
                           "are with rabbit_quorum_queue.",
    "amqp_auto_delete": "Whether the exchange and the request queues are deleted with their last "
                        "user.",
}
#: The options that have no effect, and why.
MEANINGLESS = {
    "rpc_conn_pool_size": "There is no pool: a client has one connection for all its calls.",
    "conn_pool_min_size": "There is no pool of connections.",
    "conn_pool_ttl": "There is no pool of connections.",
    "kombu_reconnect_delay": "The first attempt to reconnect is made at once.",
    "kombu_reconnect_splay": "All pauses between attempts to reconnect have a random part.",
    "kombu_missing_consumer_retry_timeout": "A server does not wait for a client that is away: "
                                            "the client repeats its request.",
    "kombu_failover_strategy": "Each process tries the nodes in a random order of its own, and "
                               "begins with the one after that which it lost.",
    "rabbit_retry_interval": "The first attempt to reconnect is made at once, the second after "
                             "0.1 s at most; each further pause is twice as long.",
    "rabbit_retry_backoff": "Each pause is twice as long as the one before, up to "
                            "rabbit_interval_max.",
    "rabbit_qos_prefetch_count": "A worker takes as many calls as [conductor] threads, "
                                 "fleet_threads and claims_together say.",
    "heartbeat_rate": "Heartbeats are checked once a second.",
    "direct_mandatory_flag": "Always on, in the library too.",
    "use_queue_manager": "The name of a reply queue is random.",
    "hostname": "Only use_queue_manager reads it.",
    "processname": "Only use_queue_manager reads it.",
    "rabbit_stream_fanout": "There are no fanout queues.",
}
#: The options that have no effect and are refused if they are on, and why.
REFUSED = {
    "ssl_enforce_fips_mode": "FIPS mode is a setting of the machine's OpenSSL, which no program "
                             "can change.",
}
_LOGIN_METHODS = ("AMQPLAIN", "PLAIN", "EXTERNAL")


def of_url(conf: cfg.ConfigOpts, url: object) -> cfg.ConfigOpts.GroupAttr:
    """Return the options; values in the query of the transport URL replace those of the files.

    :param conf: configuration with the group
    :param url: :class:`oslo_messaging.TransportURL`
    :raises InvalidInput: for a name in the query that is no option, or a value of a wrong type
    """
    try:
        return getattr(common.ConfigOptsProxy(conf, url, GROUP), GROUP)
    except (cfg.Error, ValueError) as error:
        raise exception.InvalidInput(what="query of transport_url", reason=str(error)) from None


def check(options: cfg.ConfigOpts.GroupAttr) -> None:
    """Refuse what would not be done.

    :raises InvalidInput: which names the option
    """
    for name, reason in REFUSED.items():
        if options[name]:
            raise refusal(name, reason)
    if options.rabbit_login_method not in _LOGIN_METHODS:
        raise refusal("rabbit_login_method", f"{options.rabbit_login_method} is not supported; "
                                             f"there are {', '.join(_LOGIN_METHODS)}")
    if options.rabbit_ha_queues and options.rabbit_quorum_queue:
        raise refusal("rabbit_ha_queues", "quorum queues are not mirrored; switch "
                                          "rabbit_quorum_queue off, or this option")
    if options.enable_cancel_on_failover and (
            options.rabbit_quorum_queue or options.rabbit_transient_quorum_queue):
        raise refusal("enable_cancel_on_failover", "RabbitMQ refuses it for quorum queues; switch "
                      "rabbit_quorum_queue and rabbit_transient_quorum_queue off, or this option")
    if options.heartbeat_timeout_threshold < 0:
        raise refusal("heartbeat_timeout_threshold", "it must be 0 or more")
    bodies.compression_of(options.kombu_compression)


def refusal(name: str, reason: str) -> exception.InvalidInput:
    """Return the error for an option."""
    return exception.InvalidInput(what=f"[{GROUP}] {name}", reason=reason)
