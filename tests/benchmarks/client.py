# SPDX-License-Identifier: Apache-2.0
"""A client process of the benchmark: ``python -m tests.benchmarks.client`` with JSON lines.

The first line has the bus and the providers; each further one is a piece of work, and is answered
with one line.
"""

import json
import random
import sys
import threading
import time

import oslo_messaging

from placement_rpc import api, exception
from placement_rpc import conf as configuration
from placement_rpc.context import RequestContext
from placement_rpc.objects import base as objects_base
from placement_rpc.objects.nova.compute_node import ComputeNode
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.rpc import routing
from tests import base
from tests.benchmarks import bare_conductor, fleet


class Client:
    """The kinds of work.

    :param where: dict of transport_url, providers (list of uuids), threads
    """

    def __init__(self, where):
        self.conf = configuration.new_config(config_files=[], transport_url=where["transport_url"])
        self.providers = where["providers"]
        self.threads = where["threads"]
        self.api = api.PlacementAPI(conf=self.conf)
        self.without_outbox = api.PlacementAPI(conf=self.conf, topic=bare_conductor.TOPIC)
        transport = oslo_messaging.get_rpc_transport(self.conf)
        self.bare = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(
            exchange=routing.EXCHANGE, topic="echo", version="1.0")).prepare(timeout=30)
        self.serializer = objects_base.Serializer()
        self.nodes, self.pattern = {}, fleet.node_columns(0)

    def _claim(self):
        return base.claim({random.choice(self.providers): {
            "VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 5}})

    def echo(self):
        """Send the payload of a claim and receive it back, with oslo.messaging alone."""
        payload = self.serializer.serialize_entity(None, self._claim())
        self.bare.call(RequestContext().to_dict(), "echo", claim=payload,
                       request_id=api.new_request_id())
        return 1

    def claim(self):
        self.api.claim_allocations(None, self._claim())
        return 1

    def claim_without_outbox(self):
        self.without_outbox.claim_allocations(None, self._claim())
        return 1

    def cast(self):
        self.api.claim_allocations(None, self._claim(), cast=True)
        return 1

    def claim_batch(self):
        results = self.api.claim_batch(None, [self._claim() for _ in range(100)])
        return sum(not isinstance(each, Exception) for each in results)

    def sync(self):
        """Do a cycle of a resource tracker without a change; each thread has its own node."""
        number = threading.get_ident()
        node = self.nodes.get(number)
        if node is None:
            uuid = base.new_uuid()
            node = self.nodes[number] = ComputeNode.of_row({
                **self.pattern, "uuid": uuid, "hypervisor_hostname": f"tracker {uuid}"})
        self.api.sync_compute_node(None, node, {}, time.time())
        return 1

    def ping(self):
        self.api.ping(None)
        return 1

    def echo_found(self):
        """Receive as many bytes as a hundred candidates have, with oslo.messaging alone."""
        self.bare.call(RequestContext().to_dict(), "echo_found", count=100,
                       wanted=self.serializer.serialize_entity(None, _wanted()))
        return 1

    def find(self):
        if len(self.api.get_by_request(None, _wanted()).objects) != 100:
            raise RuntimeError("fewer than 100 candidates were found")
        return 1

    def place(self):
        """Find and claim a free device; return 0 if no device is left."""
        claim = base.claim(None)
        del claim.allocations
        try:
            self.api.claim_by_request(None, ResourceRequest(resources={"FPGA": 1}), claim)
        except exception.NoCandidates:
            return 0
        return 1

    def set_inventory(self):
        amounts = {"VCPU": 100_000, "MEMORY_MB": 100_000_000}
        self.api.set_inventory(None, random.choice(self.providers), [
            base.inventory(name, total) for name, total in amounts.items()] + [
                base.inventory("DISK_GB", random.randrange(10 ** 6, 10 ** 8))])
        return 1

    def work(self, name, seconds, threads, until_empty=False):
        """Do one kind of work for a time, or until none is left.

        :returns: dict of the number done, the seconds, and the duration of each call
        """
        call, done, took = getattr(self, name), [0] * threads, [[] for _ in range(threads)]
        ends = time.monotonic() + seconds

        def run(number):
            while (began := time.perf_counter()) and time.monotonic() < ends:
                more = call()
                done[number] += more
                took[number].append(time.perf_counter() - began)
                if until_empty and not more:
                    return

        began = time.monotonic()
        workers = [threading.Thread(target=run, args=(number,))
                   for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return {"done": sum(done), "seconds": time.monotonic() - began,
                "took": [each for times in took for each in times]}


def _wanted():
    return ResourceRequest(
        resources={"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}, limit=100)


def main():
    client = Client(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(client.work(
            order["work"], order["seconds"], order.get("threads", client.threads),
            order.get("until_empty", False))), flush=True)


if __name__ == "__main__":
    main()
