# SPDX-License-Identifier: Apache-2.0
"""A private cluster of RabbitMQ nodes."""

import json
import os
import pathlib
import secrets
import time

import fixtures

from placement_rpc.testing import server_process, together
from placement_rpc.testing.servers import RabbitMQ
from placement_rpc.testing.waiting import wait_until

# Seconds without a sign of life after which nodes give up one that is cut off; RabbitMQ's own 60
# are longer than the tests wait. The operator's guide recommends the same.
_TICK_SECONDS = 15
# Seconds after which a node that hung has seen whether there is a majority.
_PAUSES_WITHIN = 15
# What a node answers on which RabbitMQ does not run, though Erlang does.
_PAUSES = "requires the 'rabbit' app to be running"

_LEADER = """{ok, Queue} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)),
    {_, Leader} = amqqueue:get_pid(Queue), Leader."""


class RabbitMQCluster(fixtures.Fixture):
    """Nodes on 127.0.0.1 that form a cluster, and pause if they are in the minority.

    :param size: int, the number of nodes
    :param plugins: of each node, as of :class:`placement_rpc.testing.servers.RabbitMQ`
    :ivar nodes: list of :class:`Node`
    :ivar url: str, with the addresses of all nodes
    """

    def __init__(self, size=3, plugins=()):
        super().__init__()
        self._size = size
        self._plugins = plugins

    def _setUp(self):
        epmd = self.useFixture(_Epmd())
        names = [f"node{number}@localhost" for number in range(self._size)]
        shared = {"plugins": self._plugins, "epmd_port": epmd.port, "names": names,
                  "cookie": secrets.token_hex(16), "password": secrets.token_urlsafe(24)}
        self.nodes = [Node(name, **shared) for name in names]
        together.set_up(self, self.nodes)
        self.wait_until_complete()
        self.url = self.url_of(*self.nodes)

    def url_of(self, *nodes, path=""):
        """Return the URL of some of the nodes, in this order.

        :param path: str, the virtual host
        """
        addresses = ",".join(f"{node.username}:{node.password}@127.0.0.1:{node.port}"
                             for node in nodes)
        return f"rabbit://{addresses}/{path}"

    @property
    def running(self):
        """The nodes whose process runs, as a list."""
        return [node for node in self.nodes if node.process.poll() is None]

    def rabbitmqctl(self, *arguments):
        """Run rabbitmqctl on the first node that runs, and return what it prints."""
        return self.running[0].rabbitmqctl(*arguments)

    def leader_of(self, queue, virtual_host="/"):
        """Return the :class:`Node` that leads a quorum queue; None while no running one does."""
        # Other commands wait a minute for the members of queues that do not answer.
        name = self.rabbitmqctl("-q", "eval", _LEADER % (virtual_host, queue)).strip()
        return next((node for node in self.running if node.name == name), None)

    def wait_until_complete(self, nodes=None):
        """Wait until each of the nodes sees all of them.

        :param nodes: None for those that run
        """
        nodes = self.running if nodes is None else nodes
        wait_until(
            lambda: all(node.members() >= {other.name for other in nodes} for node in nodes),
            server_process.START_TIMEOUT,
            lambda: f"{len(nodes)} nodes of RabbitMQ do not find each other")

    def rejoin(self, node):
        """Wait until a node that hung sees the others again; return whether it was restarted.

        It should see no majority, and pause until it does. With RabbitMQ 3.10 it finds the others
        back before it has noticed that they gave it up: it then does not pause, and stays cut off
        until it is restarted.
        """
        ends = time.monotonic() + _PAUSES_WITHIN
        while time.monotonic() < ends or not node.is_cut_off():
            if node.members() >= {other.name for other in self.running}:
                self.wait_until_complete()
                return False
            if time.monotonic() > ends + server_process.START_TIMEOUT:
                raise RuntimeError(f"{node.name} does not find the other nodes")
            time.sleep(0.2)
        node.rabbitmqctl("stop_app")
        node.rabbitmqctl("start_app")
        self.wait_until_complete()
        return True


class Node(RabbitMQ):
    """A node of a cluster; ``name`` is what the others call it.

    :param plugins: which are enabled from the start
    :param epmd_port: int, of the Erlang daemon that knows the addresses of all nodes
    :param names: list of str, those of all nodes
    :param cookie: str, the secret that they share
    :param password: str, that of the administrator
    """

    def __init__(self, name, plugins, epmd_port, names, cookie, password):
        super().__init__(plugins)
        self.name = name
        self.password = password
        self._names = names
        self._cookie = cookie
        self._epmd = epmd_port

    def _epmd_port(self):
        return self._epmd

    def _node_name(self):
        return self.name

    def _configuration(self):
        yield from super()._configuration()
        yield "cluster_partition_handling = pause_minority"
        yield "cluster_formation.peer_discovery_backend = classic_config"
        # Nodes that start at the same time: the first that has the lock forms the cluster.
        yield "cluster_formation.randomized_startup_delay_range.min = 0"
        yield "cluster_formation.randomized_startup_delay_range.max = 1"
        for number, name in enumerate(self._names, 1):
            yield f"cluster_formation.classic_config.nodes.{number} = {name}"

    def _prepare(self):
        path = pathlib.Path(self.tempdir, ".erlang.cookie")
        path.touch(mode=0o600)
        path.write_text(self._cookie)
        os.chmod(path, 0o400)
        self.env["RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"] += (
            f" -kernel net_ticktime {_TICK_SECONDS} +S 1:1")

    def is_quorum_critical(self):
        """Return whether queues would lose their majority if the node ended now: bool."""
        try:
            self._run("rabbitmq-queues", "-q", "check_if_node_is_quorum_critical")
        except RuntimeError:
            return True
        return False

    def rebalance(self):
        """Spread the leaders of the quorum queues over the nodes."""
        self._run("rabbitmq-queues", "rebalance", "quorum")

    def members(self):
        """Return the names of the nodes that this one sees running, as a set.

        It is empty while the node pauses, since it sees no majority.
        """
        return set(self._cluster_status()["running_nodes"])

    def is_cut_off(self):
        """Return whether the node runs, and does not see a majority of the nodes: bool."""
        status = self._cluster_status()
        return self.name in status["running_nodes"] and (
            2 * len(status["running_nodes"]) <= len(status["disk_nodes"]))

    def _cluster_status(self):
        try:
            return json.loads(self.rabbitmqctl("-q", "cluster_status", "--formatter", "json"))
        except RuntimeError as error:
            if _PAUSES not in str(error):
                raise
            return {"running_nodes": [], "disk_nodes": []}


class _Epmd(server_process.ServerProcess):
    """The Erlang daemon of a cluster, which outlives each of its nodes; ``port``."""

    # With debugging, it logs when it is ready.
    _command = ("epmd", "-d", "-d", "-address", "127.0.0.1")
    _ready = "entering the main select"

    def _setUp(self):
        super()._setUp()
        self.port = server_process.reserve_port(self)
        self.env = {"ERL_EPMD_PORT": str(self.port)}
        self.start()
