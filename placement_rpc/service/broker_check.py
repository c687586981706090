# SPDX-License-Identifier: Apache-2.0
"""Whether what the broker keeps for this service is durable, bounded and read.

RabbitMQ keeps a queue that somebody once declared until somebody deletes it, and fills it with
every event, read or not: an unread queue without a bound ends with the broker.
"""

import dataclasses
import re
import shlex
import urllib.parse

import requests

from placement_rpc import exception
from placement_rpc.amqp.broker import CHANNEL_FAILURES, FAILURES
from placement_rpc.notifications import envelope
from placement_rpc.rpc import command_queue, routing

_TIMEOUT = 10
_LENGTHS = ("max-length", "max-length-bytes")
_BOUNDS = {"listener": (*_LENGTHS, "message-ttl", "expires"), "stream": ("max-age", *_LENGTHS),
           "commands": _LENGTHS, "dead letters": (*_LENGTHS, "message-ttl")}
_MEND = {
    "listener": '{"max-length":1000000,"message-ttl":604800000}',
    "stream": '{"max-age":"40D","max-length-bytes":5000000000}',
    # None of these may be dropped.
    "commands": '{"max-length":1000000,"overflow":"reject-publish"}',
    "dead letters": '{"max-length":100000,"message-ttl":2592000000}'}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A queue, and what is wrong with it.

    ``kind`` is ``calls``, ``commands``, ``dead letters``, ``stream`` or ``listener``. ``trouble``
    and ``mend`` are lists of str, in the same order; empty where all is well.
    """

    queue: str
    kind: str
    messages: int
    consumers: int
    trouble: list
    mend: list


class Management:
    """The management interface of a broker.

    :param url: str, as ``http://user:password@host:15672``
    :param virtual_host: str
    """

    def __init__(self, url, virtual_host):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise exception.InvalidInput(
                what="management URL", reason="it looks like http://user:password@host:15672")
        self._url = urllib.parse.urlunsplit(
            (parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        self._auth = tuple(urllib.parse.unquote(part or "guest")
                           for part in (parts.username, parts.password))
        self.virtual_host = virtual_host

    def get(self, *path):
        """:returns: what the interface answers for the virtual host; None where there is none

        :raises ServiceUnavailable: when it can not be asked
        """
        resource, *rest = (urllib.parse.quote(part, safe="") for part in (
            path[0], self.virtual_host, *path[1:]))
        url = "/".join([self._url, "api", resource, *rest])
        try:
            answer = requests.get(url, auth=self._auth, timeout=_TIMEOUT)
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return answer.json()
        except (requests.RequestException, ValueError) as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            raise exception.ServiceUnavailable(
                reason=f"the management interface at {self._url} did not answer as expected "
                       f"({status or type(error).__name__}); it takes 'rabbitmq-plugins enable "
                       "rabbitmq_management' and a user with the tag 'monitoring'") from None


def check(conf, broker, management, topic, exchange):
    """Look at every queue of this service and of its listeners.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param management: :class:`Management`
    :param topic: str, where the service listens
    :param exchange: str
    :returns: list of :class:`Finding`
    :raises ServiceUnavailable: when the broker can not be asked
    """
    bindings = management.get("bindings") or []
    kinds = _kinds(conf, bindings, topic, exchange)
    found = {queue["name"]: queue for queue in management.get("queues") or []
             if queue["name"] in kinds}
    counts = _counts(broker, found)
    findings = [_look(found[name], kinds[name], *counts[name], management.virtual_host)
                for name in found if name in counts]
    findings += [Finding(name, kind, 0, 0, ["missing"], ["start a conductor"])
                 for name, kind in kinds.items() if name not in found]
    stream = conf.notifications.stream
    if stream in found and not any(
            binding["source"] == exchange and binding["destination"] == stream
            for binding in bindings):
        findings.append(Finding(stream, "stream", 0, 0, ["not bound"], ["restart the conductors"]))
    described = management.get("exchanges", exchange)
    if described and not described["durable"]:
        findings.append(Finding(
            f"(exchange {exchange})", "exchange", 0, 0, ["not durable"],
            [f"stop what uses it, 'rabbitmqadmin -V {shlex.quote(management.virtual_host)} delete "
             f"exchange name={exchange}', and start it with [oslo_messaging_rabbit] "
             "rabbit_quorum_queue = true everywhere"]))
    return sorted(findings, key=lambda finding: (finding.kind, finding.queue))


def _kinds(conf, bindings, topic, exchange):
    """:returns: dict of queue to kind"""
    events = f"{conf.notifications.topic}.{envelope.PRIORITY}"
    calls = [routing.name(topic, each) for each in routing.QUEUES]
    kinds = {}
    for binding in bindings:
        if binding["source"] != exchange or binding["destination_type"] != "queue":
            continue
        key, name = binding["routing_key"], binding["destination"]
        if key in calls or key.startswith(tuple(f"{each}." for each in calls)):
            kinds.setdefault(name, "calls")
        elif key == events or "*" in key or "#" in key:
            kinds[name] = "listener"
    kinds |= dict.fromkeys(calls[1:], "calls")
    return kinds | {command_queue.name(topic): "commands", conf.notifications.stream: "stream",
                    conf.queues.dead_letters: "dead letters"}


def _counts(broker, names):
    """:returns: dict of queue to its messages and consumers, as they are now"""
    counts = {}
    try:
        with broker.connected() as connection:
            for name in names:
                channel = connection.channel()
                try:
                    answer = channel.queue_declare(name, passive=True)
                except CHANNEL_FAILURES:
                    # It is somebody's alone, or went away meanwhile.
                    continue
                counts[name] = answer.message_count, answer.consumer_count
                channel.close()
    except FAILURES as error:
        raise exception.ServiceUnavailable(reason=f"{type(error).__name__}: {error}") from error
    return counts


def _look(queue, kind, messages, consumers, virtual_host):
    """:returns: :class:`Finding` of a queue as the management interface describes it"""
    name = queue["name"]
    limits = {key.removeprefix("x-") for key in queue.get("arguments") or {}}
    limits.update(queue.get("effective_policy_definition") or {})
    control = f"rabbitmqctl -p {shlex.quote(virtual_host)}"
    delete = f"{control} delete_queue {shlex.quote(name)}"
    troubles = []
    if not queue["durable"]:
        troubles.append((
            "not durable", "set [oslo_messaging_rabbit] rabbit_quorum_queue = true in whoever "
                           f"declares it, and: {delete}"))
    if kind != "calls" and not limits.intersection(_BOUNDS[kind]):
        # Calls expire by themselves.
        troubles.append(("unbounded", " ".join((
            control, "set_policy --apply-to queues --priority 10",
            shlex.quote(f"bound-{name}"), shlex.quote(f"^{re.escape(name)}$"),
            shlex.quote(_MEND[kind])))))
    unread = _unread(kind, messages, consumers)
    if unread:
        troubles.append((unread[0], unread[1] or (
            f"start whoever read it; where that is gone for good: {delete}")))
    return Finding(name, kind, messages, consumers, [trouble for trouble, _ in troubles],
                   [mend for _, mend in troubles])


def _unread(kind, messages, consumers):
    """:returns: tuple of the trouble and how to mend it, or None for that; None for no trouble"""
    if kind == "dead letters":
        return ("dead letters wait", "placement-rpc-manage dead-letters list") if messages else (
            None)
    if kind == "commands" and not consumers:
        return "unread", "start a conductor"
    if not consumers and (kind == "calls" or (kind == "listener" and messages)):
        return "unread", None
    return None
