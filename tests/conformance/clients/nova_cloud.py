# SPDX-License-Identifier: Apache-2.0
"""nova's own code, ready to be called: report client, resource tracker, request specs.

What nova reads from its own database is given to it; all that it asks Placement is its own.
"""

import pathlib
import random
import tempfile
from unittest import mock

import nova.conf
from nova import context as nova_context
from nova import objects, utils
from nova.compute import resource_tracker
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.client import report

objects.register_all()

CONTEXT = nova_context.get_admin_context()
VCPU, MEMORY_MB, DISK_GB = "VCPU", "MEMORY_MB", "DISK_GB"


class Cloud:
    """What scripts need of nova.

    :param script: :class:`clients.script.Script`
    """

    def __init__(self, script):
        self.script = script
        self.project, self.user = script.uuid("project"), script.uuid("user")
        directory = script.enter_context(tempfile.TemporaryDirectory())
        path = pathlib.Path(directory, "nova.conf")
        path.write_text(
            "[placement]\nauth_type = admin_token\ntoken = admin\n"
            f"endpoint = {script.url}\n[compute]\nresource_provider_association_refresh = 300\n")
        nova.conf.CONF(["--config-file", str(path)], project="nova", prog="nova-compute")
        script.callback(nova.conf.CONF.reset)
        # nova waits up to six seconds between its attempts.
        script.enter_context(mock.patch.object(random, "uniform", return_value=0.0))
        self.client = self.new_client()
        # Code of nova that is not given a client asks for the one of its process.
        script.enter_context(mock.patch.object(report, "PLACEMENTCLIENT", self.client))

    def new_client(self):
        """Return a report client of another process of nova."""
        adapter = utils.get_sdk_adapter("placement", admin=True)
        session = adapter.session
        session.session = self.script.wire.attach(session.session)
        return report.SchedulerReportClient(adapter)

    def node(self, label):
        """Return the compute node that a label stands for."""
        return objects.ComputeNode(
            uuid=self.script.uuid(label), host=self.script.name(label),
            hypervisor_hostname=self.script.name(label))

    def host(self, label, inventories=None, traits=(), aggregates=()):
        """Return a node that has been reported; its inventories are those of an ordinary host.

        :param traits: names
        :param aggregates: labels
        """
        node = self.node(label)
        tree = self.client.get_provider_tree_and_ensure_root(
            CONTEXT, node.uuid, name=node.hypervisor_hostname)
        tree.update_inventory(node.uuid, inventories or of_a_host())
        tree.update_traits(node.uuid, traits)
        tree.update_aggregates(node.uuid, [self.script.uuid(each) for each in aggregates])
        self.client.update_from_provider_tree(CONTEXT, tree)
        return node

    def claim(self, label, allocations, client=None):
        """Claim for a new instance; return it.

        :param allocations: dict of provider uuid to dict of class to amount
        """
        instance = self.instance(label)
        done = (client or self.client).claim_resources(
            CONTEXT, instance.uuid, self.payload(allocations, None), self.project, self.user,
            "1.36")
        if not done:
            raise ValueError(f"{label} does not fit")
        return instance

    def held(self, label):
        """Return what the consumer that a label stands for holds."""
        return self.client.get_allocs_for_consumer(CONTEXT, self.script.uuid(label))

    def tracker(self, node, driver):
        """Return the resource tracker of a node, which nova has not disabled."""
        tracker = resource_tracker.ResourceTracker(node.host, driver, reportclient=self.client)
        tracker.compute_nodes[node.hypervisor_hostname] = node
        self.script.enter_context(mock.patch.object(
            objects.Service, "get_by_compute_host", return_value=objects.Service(disabled=False)))
        return tracker

    def instance(self, label, node=None):
        """Return the instance that a label stands for."""
        return objects.Instance(
            uuid=self.script.uuid(label), project_id=self.project, user_id=self.user,
            host=node and node.host, node=node and node.hypervisor_hostname)

    def payload(self, allocations, generation):
        """Return the body of PUT /allocations.

        :param allocations: dict of provider uuid to dict of class to amount
        """
        return {"allocations": {uuid: {"resources": resources}
                                for uuid, resources in allocations.items()},
                "project_id": self.project, "user_id": self.user,
                "consumer_generation": generation}

    def candidates(self, extra_specs=None, groups=(), **values):
        """Ask for candidates as the scheduler does; return what the client returns."""
        return self.client.get_allocation_candidates(
            CONTEXT, self.request(extra_specs, groups, **values))

    def request(self, extra_specs=None, groups=(), **values):
        """Return the resource request of a flavor with two VCPU, a GiB of memory and ten of disk.

        :param groups: :class:`nova.objects.RequestGroup` of ports and devices
        """
        spec = objects.RequestSpec(**{
            "instance_uuid": self.script.uuid("requested"), "project_id": self.project,
            "user_id": self.user, "image": objects.ImageMeta(
                properties=objects.ImageMetaProps()), "requested_resources": list(groups),
            "is_bfv": False, "request_level_params": objects.RequestLevelParams(),
            "flavor": objects.Flavor(
                vcpus=2, memory_mb=1024, root_gb=10, ephemeral_gb=0, swap=0,
                extra_specs=extra_specs or {}), **values})
        return scheduler_utils.ResourceRequest.from_request_spec(spec)


class Driver:
    """Stands for nova's driver of a hypervisor.

    :ivar describe: function of the provider tree and the name of the node, and of allocations
        when nova asks for them
    """

    traits = {"COMPUTE_NODE": True}

    def __init__(self, describe):
        self.describe = describe

    def update_provider_tree(self, tree, name, allocations=None):
        self.describe(tree, name, allocations)

    def capabilities_as_traits(self):
        return self.traits

    def get_nodenames_by_uuid(self, refresh=False):
        return {}


def inventory(total, **values):
    """Return an inventory as nova's drivers write it."""
    return {"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1,
            "allocation_ratio": 1.0, **values}


def of_a_host(vcpus=16, memory=32768, disk=1000):
    """Return the inventories of an ordinary host."""
    return {VCPU: inventory(vcpus, allocation_ratio=4.0),
            MEMORY_MB: inventory(memory, reserved=512),
            DISK_GB: inventory(disk)}
