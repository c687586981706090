#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A resource tracker: reports what one compute host has, and what its servers use, over RabbitMQ.

The host is described by a JSON file, in place of libvirt; --make-up prints one. Its servers are
those that run and those that are being built. The file is read again in each cycle. A cycle

* reports the host with its servers in one call, sync_compute_node: VCPU, MEMORY_MB and DISK_GB are
  written if they differ from what is stored, and so are the allocations of servers;
* puts the host into its aggregates, whose shared storage then serves its DISK_GB, and sets traits;
* keeps one child provider for each device, a GPU or the functions of a network card.

Each cycle also writes again what others have deleted, such as an inventory or an allocation. A
cycle without changes makes two calls and writes nothing.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import queue
import signal
import sys
import time
import uuid

from placement_rpc import exception
from placement_rpc.api import Claim, Inventory, PlacementAPI
from placement_rpc.objects.nova.compute_node import ComputeNode

# The namespace of the uuids of hosts; that of a device follows from its host's.
_HOSTS = uuid.UUID("2b8fd9de-3c9e-5f0a-9d57-6c1a4e7b8f30")
# Traits of hardware are what the hypervisor says; any other may be an operator's, and stays.
_HARDWARE = "HW_"


@dataclasses.dataclass(frozen=True)
class Device:
    """A GPU or a network card, whose parts can be given to servers.

    :param name: unique on its host, such as its PCI address
    :param amounts: dict of resource class to how many it has
    :param traits: names of traits
    """

    name: str
    amounts: dict
    traits: tuple = ()


class Host:
    """What the hypervisor says of a compute host.

    :param values: dict, as --make-up prints it
    :raises KeyError, TypeError, ValueError: if something is missing or has another form
    """

    def __init__(self, values):
        self.name = values["name"]
        self.uuid = values.get("uuid") or str(uuid.uuid5(_HOSTS, self.name))
        self.node = ComputeNode(
            uuid=self.uuid, host=self.name, hypervisor_hostname=self.name,
            vcpus=values["vcpus"], memory_mb=values["memory_mb"],
            local_gb=sum(values["disks_gb"]), cpu_allocation_ratio=values.get("cpu_ratio"),
            ram_allocation_ratio=values.get("memory_ratio"), disk_allocation_ratio=1.0,
            hypervisor_type="QEMU", hypervisor_version=8002000, pci_device_pools=None,
            running_vms=len(values["servers"]), **self._used(values["servers"]))
        self.traits = frozenset(values.get("traits", ()))
        self.aggregates = frozenset(values.get("aggregates", ()))
        self.shares_disk = bool(values.get("shares_disk"))
        self.devices = [Device(each["name"], each["amounts"], tuple(each.get("traits", ())))
                        for each in values.get("devices", ())]
        self.servers = values["servers"]

    @staticmethod
    def _used(servers):
        return {f"{column}_used": sum(each["resources"].get(name, 0) for each in servers.values())
                for column, name in (("vcpus", "VCPU"), ("memory_mb", "MEMORY_MB"),
                                     ("local_gb", "DISK_GB"))}

    def provider_of(self, device):
        """Return the uuid of the provider of a device, the same in each process."""
        return str(uuid.uuid5(uuid.UUID(self.uuid), device))

    def devices_of(self, provider):
        """Return what servers have of a device: dict of server uuid to dict of class to amount."""
        return {server: amounts for server, values in self.servers.items()
                for name, amounts in values.get("devices", {}).items()
                if self.provider_of(name) == provider}


def read(path):
    """Read a host from a file.

    :raises ValueError: if it describes none
    """
    try:
        with open(path) as file:
            return Host(json.load(file))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} describes no host: {type(error).__name__} {error}") from None


class ResourceTracker:
    """Keeps the providers of a host, and the allocations from them, as the hypervisor says.

    :param api: :class:`placement_rpc.api.PlacementAPI`
    :param look: callable that returns a :class:`Host`
    """

    def __init__(self, api, look):
        self._api, self._look = api, look
        # Of each provider: its generation, and what was to be there, when nothing was left to do.
        self._settled = {}
        # Differences of allocations from devices that the last cycle has seen.
        self._seen = set()
        self._done = []

    def cycle(self):
        """Report the host once.

        :returns: list of dicts of what was changed, or could not be: ``what`` and ``detail``
        :raises PlacementException: if the service cannot be reached; the next cycle repeats all
        """
        self._done = []
        looked = time.time()
        host = self._look()
        if host.uuid not in self._settled:
            # The aggregates say who has the disk, so servers can be compared only after them.
            self._report(host, looked, heal=False)
            self._keep_host(host)
        result = self._report(host, looked, heal=True)
        found = {each.uuid: each for each in self._api.list_providers(
            None, in_tree=host.uuid).objects}
        self._settle(found[host.uuid], (host.traits, host.aggregates), self._keep_host, host)
        seen, self._seen = self._seen, set()
        for device in host.devices:
            try:
                child = self._child(host, device, found)
                self._settle(child, (device, host.devices_of(child.uuid)),
                             self._keep_device, host, device, seen)
            except exception.Conflict as error:
                # The other devices do not wait for it.
                self._note("device", f"{device.name} cannot be corrected: {error}")
        self._remove_others(host, found)
        self._done += [{"what": f"{each.kind} allocations", "detail": (
            f"{each.consumer_uuid}: {'corrected' if each.healed else each.reason}")}
            for each in result.disagreements]
        return self._done

    def claim(self, server):
        """Claim what a server of the host needs, as for one that no scheduler has placed.

        :raises ClaimRefused: if there is not enough left
        :raises ConsumerConflict: if the server has allocations already
        :raises ValueError: if the host has no such server
        """
        host = self._look()
        result = self._report(host, time.time(), heal=False)
        values = host.servers.get(server)
        if values is None:
            raise ValueError(f"{host.name} has no server {server}")
        own = dict(values["resources"])
        wanted = {host.uuid: own} | {host.provider_of(name): amounts
                                     for name, amounts in values.get("devices", {}).items()}
        if result.shared_disk_uuid and "DISK_GB" in own:
            wanted[result.shared_disk_uuid] = {"DISK_GB": own.pop("DISK_GB")}
        return self._api.claim_allocations(None, Claim(
            consumer_uuid=server, consumer_generation=0, project_id=values["project_id"],
            user_id=values["user_id"], allocations=wanted))

    def release(self, server):
        """Give back what a server holds; it is done even if the service is away now."""
        return self._api.release_allocations(None, server, cast=True)

    # -- the host -----------------------------------------------------------------------

    def _report(self, host, looked, heal):
        """Report the host and its servers in one call; return its result."""
        servers = {server: {name: values[name] for name in ("project_id", "user_id", "resources")}
                   for server, values in host.servers.items()}
        # Hardware that has shrunk is a fact: a capacity below what servers use is stored, an event
        # inventory.capacity_exceeded says so, and nothing more can be claimed.
        result = self._api.sync_compute_node(
            None, host.node, servers, looked, shares_disk=host.shares_disk, heal=heal)
        if result.changed:
            self._note("node", ", ".join(result.changed))
        return result

    def _settle(self, provider, wanted, keep, *arguments):
        """Compare a provider, unless its generation says that nothing has changed since it agreed.

        :param wanted: what is to be there
        :param keep: method that compares, and writes what differs
        """
        if self._settled.get(provider.uuid) == (provider.generation, wanted):
            return
        before = len(self._done)
        keep(*arguments)
        if len(self._done) == before:
            self._settled[provider.uuid] = provider.generation, wanted

    def _keep_host(self, host):
        self._keep_traits(host.uuid, host.name, host.traits)
        stored = set(self._api.get_aggregates(None, host.uuid).aggregates)
        if not host.aggregates <= stored:
            # Other aggregates are an operator's, and stay.
            self._api.set_aggregates(None, host.uuid, stored | host.aggregates)
            self._note("aggregates", ", ".join(sorted(host.aggregates - stored)))

    def _keep_traits(self, provider, name, reported):
        stored = self._api.get_provider_traits(None, provider)
        wanted = reported | {each for each in stored.traits if not each.startswith(_HARDWARE)}
        if wanted == set(stored.traits):
            return
        for each in wanted:
            if each.startswith("CUSTOM_"):
                self._ensure(self._api.create_trait, each, exception.TraitExists)
        # With the generation that was read, so that no trait is lost that was set meanwhile.
        self._api.set_provider_traits(
            None, provider, sorted(wanted), generation=stored.generation)
        self._note("traits", f"{name}: {', '.join(sorted(wanted ^ set(stored.traits)))}")

    @staticmethod
    def _ensure(create, name, exists):
        with contextlib.suppress(exists):
            create(None, name)

    # -- its devices --------------------------------------------------------------------

    def _child(self, host, device, found):
        """Return the provider of a device; it is created, renamed or moved here if need be."""
        child, name = host.provider_of(device.name), f"{host.name}_{device.name}"
        if child in found and found[child].name == name:
            return found[child]
        self._note("device", f"{device.name} is now {name}")
        if child not in found:
            try:
                return self._api.create_provider(
                    None, name, child, parent_provider_uuid=host.uuid)
            except exception.ProviderExists:
                pass
        return self._api.update_provider(None, child, name, parent_provider_uuid=host.uuid)

    def _keep_device(self, host, device, seen):
        provider = host.provider_of(device.name)
        stored = {each.resource_class: each.total
                  for each in self._api.get_inventory(None, provider).objects}
        if stored != device.amounts:
            for name in device.amounts:
                if name.startswith("CUSTOM_"):
                    self._ensure(self._api.resource_class_create, name,
                                 exception.ResourceClassExists)
            self._api.set_inventory(None, provider, [
                Inventory(resource_class=name, total=amount, max_unit=amount)
                for name, amount in device.amounts.items()])
            self._note("inventory", f"{device.name}: {device.amounts} in place of {stored}")
        self._keep_traits(provider, device.name, frozenset(device.traits))
        self._keep_allocations(host, device, provider, seen)

    def _keep_allocations(self, host, device, provider, seen):
        """Correct the allocations from a device, if the last cycle saw the same differences.

        The scheduler claims before the hypervisor has the server, and the server is gone before
        its allocations are: what is different once may be on its way.
        """
        stored = {}
        for each in self._api.get_provider_allocations(None, provider).objects:
            stored.setdefault(each.consumer_uuid, {})[each.resource_class] = each.used
        wanted = host.devices_of(provider)
        for server in sorted(stored.keys() | wanted.keys()):
            has, wants = stored.get(server, {}), wanted.get(server, {})
            if has == wants:
                continue
            difference = (provider, server, repr(has), repr(wants))
            if difference in seen:
                self._correct(host, device, provider, server, wants)
            else:
                self._seen.add(difference)
                self._note("device allocations", f"{device.name}: {server} holds {has or 'none'} "
                                                 f"in place of {wants or 'none'}")

    def _correct(self, host, device, provider, server, wants):
        held = self._api.get_allocations(None, server)
        if held.consumer is None and not wants:
            # It was released meanwhile.
            return
        allocations = held.by_provider()
        allocations.pop(provider, None)
        if wants:
            allocations[provider] = wants
        owner = host.servers.get(server) or {
            "project_id": held.consumer.project_id, "user_id": held.consumer.user_id}
        generation = held.consumer.generation if held.consumer else 0
        try:
            if allocations:
                self._api.claim_allocations(None, Claim(
                    consumer_uuid=server, consumer_generation=generation,
                    project_id=owner["project_id"], user_id=owner["user_id"],
                    allocations=allocations))
            else:
                self._api.release_allocations(None, server, generation)
        except exception.Conflict as error:
            # Too little is left, or another process was faster: the next cycle looks again.
            self._note("device allocations", f"{device.name}: {server} is not corrected: {error}")
        else:
            self._note("device allocations", f"{device.name}: {server} is corrected")

    def _remove_others(self, host, found):
        """Delete the providers of devices that are gone; those in use are only named."""
        wanted = {host.uuid, *(host.provider_of(each.name) for each in host.devices)}
        for child in found.keys() - wanted:
            name = found[child].name.removeprefix(f"{host.name}_")
            if child != host.provider_of(name):
                # Another process has made it.
                continue
            try:
                self._api.delete_provider(None, child)
                self._note("device", f"{name} is gone")
            except exception.ProviderInUse:
                self._note("device", f"{name} is gone, but servers still have allocations")

    def _note(self, what, detail):
        self._done.append({"what": what, "detail": detail})


def make_up(name):
    """Return the description of a host that does not exist."""
    return {
        "name": name, "vcpus": 64, "memory_mb": 262144, "disks_gb": [960, 960], "cpu_ratio": 4.0,
        "memory_ratio": 1.0, "traits": ["HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F"],
        "aggregates": [], "shares_disk": False,
        "devices": [
            {"name": "pci_0000_3b_00_0", "amounts": {"VGPU": 8}, "traits": ["CUSTOM_A100"]},
            {"name": "pci_0000_5e_00_0", "amounts": {"SRIOV_NET_VF": 16},
             "traits": ["CUSTOM_PHYSNET_1", "HW_NIC_SRIOV"]}],
        "servers": {str(uuid.uuid4()): {
            "project_id": "project", "user_id": "user",
            "resources": {"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40},
            "devices": {"pci_0000_3b_00_0": {"VGPU": 1}}}}}


def run(tracker, options, signals):
    """Run cycles until a signal comes; return the exit code."""
    code = number = 0
    while signals.empty():
        try:
            show(tracker.cycle(), options.format)
            code = 0
        except (exception.PlacementException, OSError, ValueError) as error:
            print(f"resource_tracker: {error}; the next cycle repeats it", file=sys.stderr)
            code = 1
        number += 1
        if number == options.cycles:
            return code
        with contextlib.suppress(queue.Empty):
            signals.put(signals.get(timeout=options.interval))
    return 0


def show(done, style):
    """Print what a cycle did: lines of text on a terminal, one line of JSON elsewhere."""
    if style == "json" or (style == "auto" and not sys.stdout.isatty()):
        print(json.dumps(done), flush=True)
        return
    print(time.strftime("%H:%M:%S"), "nothing changed" if not done else "", flush=True)
    for each in done:
        print(f"  {each['what']:20} {each['detail']}", flush=True)


def _parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("host", nargs="?", metavar="HOST.json", help="what the hypervisor says")
    parser.add_argument("--make-up", metavar="NAME",
                        help="print the description of a host that does not exist, and exit")
    parser.add_argument("--transport-url", metavar="URL",
                        help="the bus, as rabbit://user:password@host:port/ (default: as "
                             "configured in /etc/placement-rpc/placement-rpc.conf)")
    parser.add_argument("--interval", type=float, default=60.0, metavar="SECONDS",
                        help="time between two cycles (default: 60)")
    parser.add_argument("--cycles", type=int, metavar="N",
                        help="end after so many cycles (default: when it is interrupted)")
    parser.add_argument("--claim", metavar="SERVER", help="claim what a server of the host needs, "
                                                          "and exit")
    parser.add_argument("--release", metavar="SERVER",
                        help="give back what a server holds, by a cast, and exit")
    parser.add_argument("--format", choices=("auto", "text", "json"), default="auto",
                        help="auto is text on a terminal and JSON elsewhere")
    return parser


def main():
    parser = _parser()
    options = parser.parse_args()
    if options.make_up:
        print(json.dumps(make_up(options.make_up), indent=2))
        return 0
    if not options.host:
        parser.error("give the file of a host, or --make-up NAME for one")
    # A handler that set an Event would wait for ever if the signal came while its lock is held.
    signals = queue.SimpleQueue()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: signals.put(received))
    try:
        look = functools.partial(read, options.host)
        look()
        with PlacementAPI(transport_url=options.transport_url) as api:
            tracker = ResourceTracker(api, look)
            if options.claim:
                tracker.claim(options.claim)
            elif options.release:
                print(tracker.release(options.release))
            else:
                return run(tracker, options, signals)
    except (exception.PlacementException, OSError, ValueError) as error:
        print(f"resource_tracker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
