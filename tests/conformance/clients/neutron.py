# SPDX-License-Identifier: Apache-2.0
"""neutron-lib's client, as neutron's placement and segments plugins use it."""

import functools
import pathlib
import tempfile

from clients.nova_cloud import VCPU, inventory
from keystoneauth1 import loading
from neutron_lib.placement import client
from oslo_config import cfg

_EGRESS, _INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"


def _client(script, version=client.PLACEMENT_API_LATEST_SUPPORTED):
    """Return a client that has been configured as in neutron.conf."""
    directory = script.enter_context(tempfile.TemporaryDirectory())
    path = pathlib.Path(directory, "neutron.conf")
    path.write_text("[placement]\nauth_type = admin_token\ntoken = admin\n"
                    f"endpoint = {script.url}\n")
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt("region_name"), cfg.StrOpt("endpoint_type", default="public")],
                       group="placement")
    loading.register_auth_conf_options(conf, "placement")
    loading.register_session_conf_options(conf, "placement")
    conf(["--config-file", str(path)], project="neutron")
    made = client.PlacementAPIClient(conf, version)
    made._client = made._create_client()
    made._client.session = script.wire.attach(made._client.session)
    return made


def _provider(script, label, **values):
    return {"uuid": script.uuid(label), "name": script.name(label), **values}


def _bandwidths(total=1000):
    return {name: {"total": total, "reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1,
                   "allocation_ratio": 1.0} for name in (_EGRESS, _INGRESS)}


def _touch(script, label):
    """Change the inventories of a provider as another process does."""
    path = f"/resource_providers/{script.uuid(label)}/inventories"
    found = script.send("GET", path)
    found["inventories"].setdefault(VCPU, inventory(1))["total"] += 1
    script.send("PUT", path, found)


def providers(script):
    """The tree of an agent: providers are ensured, renamed and put below another."""
    made = _client(script)
    create, update = made.create_resource_provider, made.update_resource_provider
    script.step("host", create, _provider(script, "host"))
    script.step("agent", made.ensure_resource_provider, _provider(
        script, "agent", parent_provider_uuid=script.uuid("host")))
    script.step("agent again", made.ensure_resource_provider, _provider(
        script, "agent", parent_provider_uuid=script.uuid("host")))
    script.step("device", made.ensure_resource_provider, _provider(
        script, "device", parent_provider_uuid=script.uuid("agent")))
    script.step("another host", create, _provider(script, "other"))
    script.step("move the agent", update, _provider(
        script, "agent", parent_provider_uuid=script.uuid("other")))
    script.step("its tree", made.list_resource_providers, in_tree=script.uuid("device"))
    script.step("as a root", update, _provider(script, "agent", parent_provider_uuid=None))
    script.step("below itself", update, _provider(
        script, "agent", parent_provider_uuid=script.uuid("device")),
        raises="PlacementClientError")
    script.step("below none", update, _provider(
        script, "agent", parent_provider_uuid=script.uuid("none")), raises="PlacementClientError")
    script.step("a name in use", update, {
        **_provider(script, "agent"), "name": script.name("host")},
                raises="PlacementResourceProviderNameNotUnique")
    script.step("a name in use, new", create, {
        **_provider(script, "new"), "name": script.name("host")}, raises="PlacementClientError")
    script.step("update none", update, _provider(script, "none"),
                raises="PlacementResourceProviderNotFound")
    script.step("create again", create, _provider(script, "host"), raises="PlacementClientError")
    script.step("get", made.get_resource_provider, script.uuid("agent"))
    script.step("get none", made.get_resource_provider, script.uuid("none"),
                raises="PlacementResourceProviderNotFound")
    for title, values in (("name", {"name": script.name("host")}),
                          ("uuid", {"uuid": script.uuid("other")}),
                          ("no name", {"name": script.name("none")})):
        script.step(f"list by {title}", made.list_resource_providers, **values)
    script.step("delete a parent", made.delete_resource_provider, script.uuid("agent"),
                raises="PlacementClientError")
    for label in ("device", "agent"):
        script.step(f"delete {label}", made.delete_resource_provider, script.uuid(label))
    script.step("delete again", made.delete_resource_provider, script.uuid("agent"),
                raises="PlacementClientError")


def inventories(script):
    """Bandwidths of devices, with generations that the client has and others that it reads."""
    made = _client(script)
    uuid, none = script.uuid("device"), script.uuid("none")
    made.create_resource_provider(_provider(script, "device"))
    set_all = made.update_resource_provider_inventories
    script.step("set", set_all, uuid, _bandwidths())
    script.step("set with a generation", set_all, uuid, _bandwidths(2000), 1)
    script.step("set with an old one", set_all, uuid, _bandwidths(), 0,
                raises="PlacementResourceProviderGenerationConflict")
    script.step("set of none", set_all, none, _bandwidths(), 0,
                raises="PlacementResourceProviderNotFound")
    script.step("set of none, unread", set_all, none, _bandwidths(),
                raises="PlacementResourceProviderNotFound")
    script.step("set an unknown class", set_all, uuid, {"CUSTOM_NOT_THERE": inventory(1)},
                raises="PlacementClientError")
    for title, times, raises in (
            ("twice", 2, None), ("always", 10, "PlacementResourceProviderGenerationConflict")):
        script.wire.meanwhile("PUT", "/inventories$", functools.partial(_touch, script, "device"),
                              times)
        script.step(f"set while it changes {title}", set_all, uuid, _bandwidths(500 + times),
                    raises=raises)
    update = made.update_resource_provider_inventory
    one = {"total": 77, "reserved": 7}
    script.step("update one", update, uuid, dict(one), _EGRESS)
    script.step("update with an old generation", update, uuid, dict(one), _EGRESS, 0,
                raises="PlacementResourceProviderGenerationConflict")
    script.step("update of none", update, none, dict(one), _EGRESS, 0,
                raises="PlacementResourceNotFound")
    script.step("update an unknown class", update, uuid, dict(one), "CUSTOM_NOT_THERE",
                raises="PlacementResourceNotFound")
    script.step("update one that it has not", update, uuid, dict(one), "DISK_GB",
                raises="PlacementClientError")
    get = made.get_inventory
    script.step("get", get, uuid, _EGRESS)
    script.step("get one that it has not", get, uuid, "DISK_GB",
                raises="PlacementInventoryNotFound")
    script.step("get an unknown class", get, uuid, "CUSTOM_NOT_THERE",
                raises="PlacementInventoryNotFound")
    script.step("get of none", get, none, _EGRESS, raises="PlacementResourceProviderNotFound")
    delete = made.delete_resource_provider_inventory
    script.step("delete", delete, uuid, _INGRESS)
    script.step("delete again", delete, uuid, _INGRESS, raises="PlacementInventoryNotFound")
    script.step("delete an unknown class", delete, uuid, "CUSTOM_NOT_THERE",
                raises="PlacementInventoryNotFound")
    script.step("delete of none", delete, none, _INGRESS,
                raises="PlacementResourceProviderNotFound")
    script.send("PUT", f"/allocations/{script.uuid('server')}", {
        "allocations": {uuid: {"resources": {_EGRESS: 1}}}, "project_id": "project",
        "user_id": "user", "consumer_generation": None, "consumer_type": "INSTANCE"})
    script.step("delete what is in use", delete, uuid, _EGRESS, raises="PlacementClientError")
    script.step("delete all of what is in use", made.delete_resource_provider_inventories, uuid,
                raises="PlacementClientError")
    script.step("set without what is in use", set_all, uuid, {}, raises="PlacementClientError")
    script.send("DELETE", f"/allocations/{script.uuid('server')}")
    script.step("delete all", made.delete_resource_provider_inventories, uuid)
    script.step("delete all of none", made.delete_resource_provider_inventories, none,
                raises="PlacementResourceProviderNotFound")


def names(script):
    """Traits, classes and aggregates."""
    made = _client(script)
    uuid, none = script.uuid("device"), script.uuid("none")
    trait, missing = script.custom("PHYSNET"), script.custom("NONE")
    made.create_resource_provider(_provider(script, "device"))
    script.step("trait", made.update_trait, trait)
    script.step("trait again", made.update_trait, trait)
    script.step("bad trait", made.update_trait, "bad", raises="PlacementClientError")
    script.step("get a trait", made.get_trait, trait)
    script.step("get none", made.get_trait, missing, raises="PlacementTraitNotFound")
    set_all = made.update_resource_provider_traits
    script.step("set", set_all, uuid, [trait])
    script.step("set with an old generation", set_all, uuid, [], 99,
                raises="PlacementResourceProviderGenerationConflict")
    script.step("set an unknown one", set_all, uuid, [missing], raises="PlacementTraitNotFound")
    script.step("set of none", set_all, none, [trait], 0,
                raises="PlacementResourceProviderNotFound")
    script.wire.meanwhile("PUT", "/traits$", functools.partial(_touch, script, "device"), 3)
    script.step("set while it changes", set_all, uuid, [trait, "HW_NIC_SRIOV"])
    script.step("list", made.list_resource_provider_traits, uuid)
    script.step("list of none", made.list_resource_provider_traits, none,
                raises="PlacementResourceProviderNotFound")
    script.step("delete a trait in use", made.delete_trait, trait, raises="PlacementClientError")
    script.step("delete all", made.delete_resource_provider_traits, uuid)
    script.step("delete all of none", made.delete_resource_provider_traits, none,
                raises="PlacementResourceProviderNotFound")
    script.step("delete a trait", made.delete_trait, trait)
    script.step("delete it again", made.delete_trait, trait, raises="PlacementTraitNotFound")
    resource_class = script.custom("SEGMENT")
    script.step("class", made.create_resource_class, resource_class)
    script.step("class again", made.create_resource_class, resource_class,
                raises="PlacementClientError")
    script.step("ensure a class", made.update_resource_class, resource_class)
    script.step("bad class", made.update_resource_class, "bad", raises="PlacementClientError")
    script.step("get a class", made.get_resource_class, resource_class)
    script.step("get no class", made.get_resource_class, missing,
                raises="PlacementResourceClassNotFound")
    script.step("delete a class", made.delete_resource_class, resource_class)
    script.step("delete it again", made.delete_resource_class, resource_class,
                raises="PlacementResourceClassNotFound")
    generation = made.get_resource_provider(uuid)["generation"]
    aggregates = {"aggregates": [script.uuid("aggregate")],
                  "resource_provider_generation": generation}
    script.step("aggregates", made.associate_aggregates, uuid, aggregates)
    script.step("aggregates with an old generation", made.associate_aggregates, uuid, aggregates,
                raises="PlacementClientError")
    script.step("aggregates of none", made.associate_aggregates, none, aggregates,
                raises="PlacementClientError")
    script.step("list aggregates", made.list_aggregates, uuid)
    script.step("list aggregates of none", made.list_aggregates, none,
                raises="PlacementAggregateNotFound")
    script.step("list by aggregate", made.list_resource_providers,
                member_of=script.uuid("aggregate"), resources="VCPU:1")


def segments(script):
    """The segments plugin counts addresses, at the version before generations of aggregates."""
    made = _client(script, "placement 1.1")
    uuid = script.uuid("segment")
    script.step("create", made.create_resource_provider, _provider(script, "segment"))
    script.step("aggregate", made.associate_aggregates, uuid, [script.uuid("segment aggregate")])
    script.step("aggregates", made.list_aggregates, uuid)
    script.step("inventory", made.update_resource_provider_inventories, uuid, {
        "IPV4_ADDRESS": inventory(253, reserved=1)})
    found = script.step("read", made.get_inventory, uuid, "IPV4_ADDRESS")
    found.pop("resource_provider_generation")
    script.step("one more", made.update_resource_provider_inventory, uuid, {
        **found, "reserved": 2}, "IPV4_ADDRESS")
    script.step("by aggregate", made.list_resource_providers, member_of=uuid,
                raises="PlacementAPIVersionIncorrect")
    script.step("all", made.list_resource_providers, uuid=uuid)
    script.step("delete", made.delete_resource_provider, uuid)


def minimum_bandwidth(script):
    """A port's minimum bandwidth changes while its server runs."""
    made = _client(script)
    device, server = script.uuid("device"), script.uuid("server")
    made.create_resource_provider(_provider(script, "device"))
    made.update_resource_provider_inventories(device, _bandwidths())
    path = f"/allocations/{server}"

    def allocate(amount):
        script.send("PUT", path, {
            "allocations": {device: {"resources": {_EGRESS: amount}}}, "project_id": "project",
            "user_id": "user", "consumer_generation": script.send("GET", path).get(
                "consumer_generation"), "consumer_type": "INSTANCE"})

    allocate(100)
    change = made.update_qos_allocation
    script.step("more", change, server, {device: {_EGRESS: 200}})
    script.step("another direction", change, server, {device: {_INGRESS: 50}})
    script.step("held", made.list_allocations, server)
    script.step("less", change, server, {device: {_EGRESS: -100, _INGRESS: -50}})
    script.step("too much", change, server, {device: {_EGRESS: 5000}}, raises="Conflict")
    script.step("of another device", change, server, {script.uuid("none"): {_EGRESS: 1}},
                raises="PlacementAllocationRpNotExists")
    script.step("of no server", change, script.uuid("none"), {device: {_EGRESS: 1}},
                raises="PlacementAllocationRemoved")
    for title, times, raises in (("twice", 2, None),
                                 ("always", 10, "PlacementAllocationGenerationConflict")):
        script.wire.meanwhile("PUT", path, lambda: allocate(300), times)
        script.step(f"while the server changes {title}", change, server, {device: {_EGRESS: 1}},
                    raises=raises)
    script.step("all", change, server, {device: {_EGRESS: -1000}})
    script.step("held at the end", made.list_allocations, server)


def without_keystone(script):
    """The client that sends every body as JSON without a content type, also none."""
    made = client.NoAuthClient(script.url)
    headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.28"}

    def send(method, path, body=None):
        answer = made.request(f"{script.url}{path}", method, body, dict(headers))
        return {"status": answer.status_code,
                "codes": [each["code"] for each in answer.json()["errors"]]
                if answer.status_code >= 400 else []}

    script.step("read", send, "GET", "/resource_providers")
    script.step("write", send, "POST", "/resource_providers", _provider(script, "host"))
    script.step("delete", send, "DELETE", f"/resource_providers/{script.uuid('none')}")
