# SPDX-License-Identifier: Apache-2.0
"""Check that connections are possible, and queues durable, on enough nodes, bounded and consumed.

RabbitMQ keeps a queue until it is deleted, and routes every event to it whether or not the queue
has a consumer: an abandoned queue without a bound grows until the broker runs out of disk.
"""

import re
import shlex
import urllib.parse

import requests

from placement_rpc import exception
from placement_rpc.amqp import tls
from placement_rpc.amqp.frames import CHANNEL_FAILURES, FAILURES
from placement_rpc.notifications import envelope
from placement_rpc.rpc import command_queue, routing
from placement_rpc.service.broker_cluster_check import check_cluster, queue_faults
from placement_rpc.service.broker_finding import Finding

_TIMEOUT = 10
# A password has no such comma.
_BETWEEN_URLS = re.compile(",(?=https?://)")
_LENGTHS = ("max-length", "max-length-bytes")
_BOUNDS = {"listener": (*_LENGTHS, "message-ttl", "expires"), "stream": ("max-age", *_LENGTHS),
           "commands": _LENGTHS, "dead letters": (*_LENGTHS, "message-ttl")}
_MEND = {
    "listener": '{"max-length":1000000,"message-ttl":604800000}',
    "stream": '{"max-age":"40D","max-length-bytes":5000000000}',
    # Commands must not be dropped, so a full queue rejects further ones.
    "commands": '{"max-length":1000000,"overflow":"reject-publish"}',
    "dead letters": '{"max-length":100000,"message-ttl":2592000000}'}


class Management:
    """A client of a broker's management interface.

    :param url: str, like ``http://user:password@host:15672``; several are separated by commas,
        and tried in turn until one answers
    :param virtual_host: str
    :param ca_file: str, the authorities that may sign the certificate of an interface over HTTPS;
        None for those of the operating system
    """

    def __init__(self, url, virtual_host, ca_file=None):
        self._verify = ca_file or True
        self._nodes = [_ManagementNode(each) for each in _BETWEEN_URLS.split(url)]
        self.virtual_host = virtual_host

    def get(self, *path):
        """Return a resource of the virtual host, as JSON values; None if it does not exist.

        :param path: str each, the kind of resource, and its name if it has one
        :raises ServiceUnavailable: if the interface does not answer or refuses the request
        """
        return self._get(path[0], self.virtual_host, *path[1:])

    def nodes(self):
        """Return the descriptions of the nodes of the cluster, a list of dict.

        :raises ServiceUnavailable: if the interface does not answer or refuses the request
        """
        return self._get("nodes")

    def _get(self, *path):
        path = "/".join(urllib.parse.quote(part, safe="") for part in path)
        try:
            answer = self._answer(f"/api/{path}")
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            return answer.json()
        except (requests.RequestException, ValueError) as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            raise exception.ServiceUnavailable(
                reason="the management interface at "
                       f"{' or '.join(node.url for node in self._nodes)} did not answer as "
                       f"expected ({status or type(error).__name__}); run 'rabbitmq-plugins "
                       "enable rabbitmq_management' on the broker, and use a user with the tag "
                       "'monitoring'") from None

    def _answer(self, path):
        """Return the answer of the first node that gives one; the others are tried after it."""
        for node in [*self._nodes]:
            try:
                return requests.get(
                    node.url + path, auth=node.auth, timeout=_TIMEOUT, verify=self._verify)
            except requests.RequestException as error:
                failed = error
                self._nodes.append(self._nodes.pop(0))
        raise failed


class _ManagementNode:
    """The address of one node's interface, and the account that is used on it.

    :param url: str
    :raises InvalidInput: if it cannot be read
    """

    def __init__(self, url):
        try:
            parts = urllib.parse.urlsplit(url)
            # An @ behind the host is that of a password with a character that ends the host.
            valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and (
                "@" not in f"{parts.path}{parts.query}{parts.fragment}")
        except ValueError:
            valid = False
        if not valid:
            raise exception.InvalidInput(
                what="management URL",
                reason="it must have the form http://user:password@host:15672, with "
                       "percent-encoded special characters in user and password")
        self.url = urllib.parse.urlunsplit(
            (parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))
        self.auth = tuple(urllib.parse.unquote(part or "guest")
                          for part in (parts.username, parts.password))


def check(conf, broker, management, topic, exchange):
    """Check every node, and every queue of this service and of its listeners.

    The queues are not checked while no node accepts connections because of its certificate.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param broker: :class:`placement_rpc.amqp.broker.Broker`
    :param management: :class:`Management`
    :param topic: str, the topic of the service
    :param exchange: str
    :returns: list of :class:`Finding`, one for each queue
    :raises ServiceUnavailable: if the broker or its management interface cannot be reached
    """
    node_findings = check_nodes(broker)
    if broker.tls and broker.tls.checks_names and len(node_findings) == len(broker.nodes):
        return node_findings
    bindings = management.get("bindings") or []
    kinds = _kinds(conf, bindings, topic, exchange)
    found = {queue["name"]: queue for queue in management.get("queues") or []
             if queue["name"] in kinds}
    counts = _counts(broker, found)
    nodes = management.nodes()
    findings = node_findings + check_cluster(broker, nodes, found.values())
    findings += [_look(found[name], kinds[name], *counts[name], nodes, management.virtual_host)
                 for name in found if name in counts]
    findings += [Finding.of(name, kind, [("missing", "start a conductor")])
                 for name, kind in kinds.items() if name not in found]
    stream = conf.notifications.stream
    if stream in found and not any(
            binding["source"] == exchange and binding["destination"] == stream
            for binding in bindings):
        findings.append(Finding.of(stream, "stream", [("not bound", "restart the conductors")]))
    described = management.get("exchanges", exchange)
    if described and not described["durable"]:
        findings.append(Finding.of(f"(exchange {exchange})", "exchange", [(
            "not durable", "stop the programs that use it, run 'rabbitmqadmin -V "
            f"{shlex.quote(management.virtual_host)} delete exchange name={exchange}', and start "
            "the programs with [oslo_messaging_rabbit] rabbit_quorum_queue = true")]))
    return sorted(findings, key=lambda finding: (finding.kind, finding.queue))


def check_nodes(broker):
    """Return a :class:`Finding` for each node that cannot be reached, or with which TLS fails."""
    findings = []
    for node in broker.nodes:
        try:
            problem = broker.tls_problem(node)
        except OSError as error:
            problem = tls.Problem(
                f"cannot be reached: {error}", "start it, or remove it from transport_url")
        if problem:
            findings.append(Finding.of(
                f"(node {node.address})", "node", [(problem.trouble, problem.remedy)]))
    return findings


def _kinds(conf, bindings, topic, exchange):
    """Return the kind of each queue, a dict of names."""
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
    """Return the current numbers of messages and consumers, a dict of queue name to a tuple."""
    counts = {}
    try:
        with broker.connected() as connection:
            for name in names:
                try:
                    with connection.asking() as channel:
                        answer = channel.queue_declare(name, passive=True)
                except CHANNEL_FAILURES:
                    # It is exclusive to another connection, or has been deleted since.
                    continue
                counts[name] = answer.message_count, answer.consumer_count
    except FAILURES as error:
        raise exception.ServiceUnavailable(reason=f"{type(error).__name__}: {error}") from error
    return counts


def _look(queue, kind, messages, consumers, nodes, virtual_host):
    """Return the :class:`Finding` about a queue.

    :param queue: dict, its description by the management interface
    :param nodes: list of dict, those of the nodes of the cluster
    """
    name = queue["name"]
    limits = {key.removeprefix("x-") for key in queue.get("arguments") or {}}
    limits.update(queue.get("effective_policy_definition") or {})
    control = f"rabbitmqctl -p {shlex.quote(virtual_host)}"
    delete = f"{control} delete_queue {shlex.quote(name)}"
    troubles = queue_faults(queue, nodes, virtual_host)
    if not queue["durable"]:
        troubles.append((
            "not durable", "set [oslo_messaging_rabbit] rabbit_quorum_queue = true in the program "
                           f"that declares it, and: {delete}"))
    if kind != "calls" and not limits.intersection(_BOUNDS[kind]):
        # Queues of calls need no bound, since each call expires.
        troubles.append(("unbounded", " ".join((
            control, "set_policy --apply-to queues --priority 10",
            shlex.quote(f"bound-{name}"), shlex.quote(f"^{re.escape(name)}$"),
            shlex.quote(_MEND[kind])))))
    unread = _unread(kind, messages, consumers)
    if unread:
        troubles.append((unread[0], unread[1] or (
            f"start its consumer or, if it no longer exists: {delete}")))
    return Finding.of(name, kind, troubles, messages, consumers)


def _unread(kind, messages, consumers):
    """Return the fault of a queue that is not consumed.

    :returns: tuple of the fault and its remedy, which is None if it depends on the queue; None if
        there is no fault
    """
    if kind == "dead letters":
        return ("dead letters wait", "placement-rpc-manage dead-letters list") if messages else (
            None)
    if kind == "commands" and not consumers:
        return "unread", "start a conductor"
    if not consumers and (kind == "calls" or (kind == "listener" and messages)):
        return "unread", None
    return None
