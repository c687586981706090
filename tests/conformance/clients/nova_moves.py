# SPDX-License-Identifier: Apache-2.0
"""What nova's conductor does when servers move: allocations of migrations, evacuations."""

from unittest import mock

from clients import nova_cloud
from clients.nova_cloud import CONTEXT, DISK_GB, MEMORY_MB, VCPU, inventory
from nova import objects
from nova.conductor.tasks import migrate
from nova.scheduler import utils as scheduler_utils


class _Move:
    """A server on a source node, and a target.

    :param disk: whether the server also holds disk of a pool
    """

    def __init__(self, script, disk=False):
        self.script, self.cloud = script, nova_cloud.Cloud(script)
        self.client = self.cloud.client
        self.source, self.target = (self.cloud.host(label, {
            VCPU: inventory(4), MEMORY_MB: inventory(4096)}, (), ["storage"])
            for label in ("source", "target"))
        self.resources = {self.source.uuid: {VCPU: 2, MEMORY_MB: 1024}}
        if disk:
            pool = self.cloud.host("pool", {DISK_GB: inventory(100)},
                                   ["MISC_SHARES_VIA_AGGREGATE"], ["storage"])
            self.resources[pool.uuid] = {DISK_GB: 10}
        self.cloud.claim("server", self.resources)
        self.server = self.cloud.instance("server", self.source)
        self.migration = objects.Migration(uuid=script.uuid("migration"))
        script.enter_context(mock.patch.object(
            objects.ComputeNode, "get_by_host_and_nodename", return_value=self.source))

    def swap(self, title, raises=None):
        """Give what the server holds to the migration."""
        self.script.step(title, migrate.replace_allocation_with_migration, CONTEXT, self.server,
                         self.migration, raises=raises)

    def revert(self, title, raises=None):
        """Give it back."""
        self.script.step(title, migrate.revert_allocation_for_migration, CONTEXT, self.source,
                         self.server, self.migration, raises=raises)

    def claim(self, title, raises=None, vcpus=2):
        """Claim for the server on the target, as the scheduler does."""
        target = {self.target.uuid: {"resources": {VCPU: vcpus, MEMORY_MB: 1024}}}
        self.script.step(title, self.client.claim_resources, CONTEXT, self.server.uuid, {
            "allocations": target}, self.cloud.project, self.cloud.user, "1.36", raises=raises)

    def delete(self, title, label):
        """Delete what the server or the migration holds."""
        self.script.step(title, self.client.delete_allocation_for_instance, CONTEXT,
                         self.script.uuid(label), consumer_type=label)

    def show(self, title):
        """Read what both hold."""
        for label in ("server", "migration"):
            self.script.step(f"{title}: {label}", self.cloud.held, label)

    def change(self, label):
        """Return a function that changes a consumer as another process does."""
        path = f"/allocations/{self.script.uuid(label)}"
        return lambda: self.script.send("PUT", path, self.cloud.payload(
            {self.target.uuid: {VCPU: 1}},
            self.script.send("GET", path, version="1.28").get("consumer_generation")), "1.28")

    def touch(self):
        """Change a provider as another process does."""
        path = f"/resource_providers/{self.source.uuid}"
        found = self.script.send("GET", f"{path}/inventories")
        found["inventories"][VCPU]["total"] += 1
        self.script.send("PUT", f"{path}/inventories", found)


def confirmed(script):
    """A resize that is confirmed."""
    move = _Move(script)
    move.swap("swap")
    move.show("swapped")
    move.claim("claim on the target")
    move.show("claimed")
    script.step("quota meanwhile", move.client.get_usages_counts_for_quota, CONTEXT,
                move.cloud.project)
    move.delete("confirm", "migration")
    move.show("confirmed")


def reverted(script):
    """A live migration with shared disk that is reverted."""
    move = _Move(script, disk=True)
    move.swap("swap")
    move.claim("claim on the target")
    move.revert("revert")
    move.show("reverted")
    move.revert("revert again")
    move.delete("delete the server", "server")
    move.swap("swap what is not there")
    script.step("move what is not there", move.client.move_allocations, CONTEXT, move.server.uuid,
                move.migration.uuid, raises="KeyError")


def refused(script):
    """A target without room."""
    move = _Move(script)
    move.swap("swap")
    move.claim("claim too much", vcpus=5)
    move.show("refused")
    move.revert("revert")
    move.show("reverted")
    # The migration would fill a source that has shrunk meanwhile.
    path = f"/resource_providers/{move.source.uuid}"
    found = script.send("GET", f"{path}/inventories")
    found["inventories"][VCPU].update(total=1, max_unit=1)
    script.send("PUT", f"{path}/inventories", found)
    move.swap("swap on a source that has shrunk", raises="NoValidHost")
    move.show("after it")


def moved_meanwhile(script):
    """Another process changes the server, the migration or the source during a swap."""
    move = _Move(script)
    script.wire.meanwhile("POST", "/allocations", move.touch)
    move.swap("while the source changes")
    move.show("swapped")
    move.revert("revert")
    script.wire.meanwhile("POST", "/allocations", move.change("migration"))
    move.swap("while the migration appears", raises="AllocationMoveFailed")
    move.show("two hold")
    script.wire.meanwhile("POST", "/allocations", move.change("server"))
    move.swap("while the server changes", raises="AllocationMoveFailed")
    move.show("as the other left it")


def already_moved(script):
    """A move that was carried out though its answer got lost."""
    move = _Move(script)
    script.wire.lose_answer("POST", "/allocations")
    move.swap("swap without an answer", raises="NoValidHost")
    move.show("swapped")
    script.step("move again", move.client.move_allocations, CONTEXT, move.server.uuid,
                move.migration.uuid)
    move.revert("revert")
    move.show("reverted")


def evacuated(script):
    """A server leaves a dead host, which cleans up when it is back."""
    move = _Move(script, disk=True)
    move.claim("claim on the target")
    move.show("doubled")
    tracker = move.cloud.tracker(move.source, nova_cloud.Driver(None))
    script.step("the host is back", tracker.delete_allocation_for_evacuated_instance, CONTEXT,
                move.server, move.source.hypervisor_hostname)
    move.show("cleaned up")
    script.step("clean up again", tracker.delete_allocation_for_evacuated_instance, CONTEXT,
                move.server, move.source.hypervisor_hostname)
    remove = move.client.remove_provider_tree_from_instance_allocation
    script.step("of an unknown tree", remove, CONTEXT, move.server.uuid, script.uuid("none"))
    script.step("of an unknown server", remove, CONTEXT, script.uuid("none"), move.source.uuid)
    move.claim("back to the source")
    script.wire.meanwhile("PUT", "/allocations/", move.change("server"))
    script.step("while another changes it", remove, CONTEXT, move.server.uuid, move.target.uuid)
    move.show("as the other left it")


def forced(script):
    """An administrator forces the target of an evacuation."""
    move = _Move(script)
    claim = scheduler_utils.claim_resources_on_destination
    script.step("forced", claim, CONTEXT, move.client, move.server, move.source, move.target)
    move.show("doubled")
    script.step("forced again", claim, CONTEXT, move.client, move.server, move.source, move.target,
                raises="NoValidHost")
    small = move.cloud.host("small", {VCPU: inventory(1), MEMORY_MB: inventory(4096)})
    another = move.cloud.claim("another", {move.target.uuid: {VCPU: 2, MEMORY_MB: 512}})
    script.step("without room", claim, CONTEXT, move.client, another, move.target, small,
                raises="NoValidHost")
    script.step("of none", claim, CONTEXT, move.client, move.cloud.instance("none"), move.target,
                small, raises="ConsumerAllocationRetrievalFailed")


def within_a_host(script):
    """A resize on the same host, which holds both sizes until it is confirmed."""
    move = _Move(script)
    move.swap("swap")
    move.target = move.source
    move.claim("claim the new size")
    move.show("both")
    move.delete("confirm", "migration")
    move.show("confirmed")


def parts(script):
    """Ports and devices come and go while the server stays."""
    move = _Move(script)
    client, server = move.client, move.server.uuid
    add = client.add_resources_to_instance_allocation
    remove = client.remove_resources_from_instance_allocation

    def on(node, **resources):
        return {node.uuid: {"resources": resources}}

    script.step("add", add, CONTEXT, server, on(move.source, VCPU=1))
    script.step("add on another", add, CONTEXT, server, on(move.target, VCPU=1))
    script.step("add nothing", add, CONTEXT, server, {})
    script.step("add too much", add, CONTEXT, server, on(move.source, VCPU=4),
                raises="AllocationUpdateFailed")
    script.step("add of an unknown provider", add, CONTEXT, server,
                {script.uuid("none"): {"resources": {VCPU: 1}}}, raises="AllocationUpdateFailed")
    script.step("add to none", add, CONTEXT, script.uuid("none"), on(move.source, VCPU=1),
                raises="AllocationUpdateFailed")
    move.show("added")
    script.step("remove", remove, CONTEXT, server, on(move.source, VCPU=1))
    script.step("remove all of another", remove, CONTEXT, server, on(move.target, VCPU=1))
    script.step("remove what it has not", remove, CONTEXT, server, on(move.target, VCPU=1),
                raises="AllocationUpdateFailed")
    script.step("remove too much", remove, CONTEXT, server, on(move.source, VCPU=9),
                raises="AllocationUpdateFailed")
    script.step("remove from none", remove, CONTEXT, script.uuid("none"), on(move.source, VCPU=1),
                raises="AllocationUpdateFailed")
    move.show("removed")
    for title, function in (("add", add), ("remove", remove)):
        script.wire.meanwhile("PUT", "/allocations/", move.touch, times=2)
        script.step(f"{title} while the provider changes", function, CONTEXT, server,
                    on(move.target, VCPU=1))
        script.wire.meanwhile("PUT", "/allocations/", move.change("server"))
        script.step(f"{title} while the server changes", function, CONTEXT, server,
                    on(move.target, VCPU=1))
        move.show("after it")
