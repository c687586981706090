# SPDX-License-Identifier: Apache-2.0
"""Each release finds what the other stored: outcomes of requests, and what HTTP shows."""

from placement_rpc.objects import class_names
from tests import base, servers
from tests.upgrade import side_by_side
from tests.upgrade.release_case import (
    ReleasesTest,
    claim,
    compute_node,
    inventory,
    name_node,
    request,
    without_news,
)


class StoredOutcomesTest(ReleasesTest):
    """A request that one release settled is answered by the other, and not settled again."""

    scenarios = [(kind, {"kind": kind}) for kind in ("postgresql", "mariadb")]

    def setUp(self):
        super().setUp()
        # A virtual host for each conductor, so that a client chooses the one that answers.
        other = self.useFixture(servers.VirtualHost()).url
        self.conductor(self.old)
        self.conductor(self.new, other)
        self.clients = {(client, server): self.client(
            getattr(self, client), self.url if server == "old" else other)
            for client in ("old", "new") for server in ("old", "new")}

    def test_a_request_that_is_sent_again(self):
        for first, second in (("old", "new"), ("new", "old")):
            asking = self.clients[first, first]
            self.check_refusals_and_batches(asking, second)
            methods = ["claim_batch"]
            for method, arguments, others in self.changes(asking):
                methods.append(method)
                request_id = f"{method[:40]}-{base.new_uuid()[:13]}"
                expected = asking.call(method, **arguments, request_id=request_id)
                for client in ("old", "new"):
                    again = self.clients[client, second]
                    self.assertEqual(
                        _as_replayed(expected), _as_replayed(again.call(
                            method, **arguments, request_id=request_id)),
                        f"{method} from {first} to {second}")
                    self.assertEqual(
                        "placement.request.id_reused",
                        again.ask(method, **{**arguments, **others}, request_id=request_id)
                        .get("error", {}).get("code"), f"{method} from {first} to {second}")
            # This is a query about a request, not a change.
            self.assertEqual(
                set(self.clients["old", "old"].changes) - {"get_request_result"}, set(methods))

    def changes(self, client):
        """Yield every kind of change: method, arguments, and arguments of another request."""
        uuid, consumer, target = (base.new_uuid() for _ in range(3))
        name = f"CUSTOM_{base.new_uuid()[:8].upper()}"
        yield "create_provider", {"name": uuid, "provider_uuid": uuid}, {"name": f"other {uuid}"}
        yield ("update_provider", {"provider_uuid": uuid, "name": f"new {uuid}"},
               {"name": f"other {uuid}"})
        yield ("set_inventory", {"provider_uuid": uuid, "inventories": [inventory("VCPU", 8)]},
               {"inventories": [inventory("VCPU", 9)]})
        yield ("add_inventory", {"provider_uuid": uuid, "inventory": inventory("DISK_GB", 8)},
               {"inventory": inventory("DISK_GB", 9)})
        yield ("update_inventory", {"provider_uuid": uuid, "inventory": inventory("DISK_GB", 9)},
               {"inventory": inventory("DISK_GB", 10)})
        yield ("delete_inventory", {"provider_uuid": uuid, "resource_class": "DISK_GB"},
               {"resource_class": "VCPU"})
        yield ("set_aggregates", {"provider_uuid": uuid, "aggregates": [uuid]},
               {"aggregates": [target]})
        # With preconditions, which hold no more when the request is sent again.
        yield ("claim_allocations", {
            "claim": claim({uuid: {"VCPU": 1}}, consumer, consumer_generation=0)}, {
            "claim": claim({uuid: {"VCPU": 2}}, consumer, consumer_generation=0)})
        yield ("move_allocations", {
            "source_uuid": consumer, "target_uuid": target, "consumer_generation": 1}, {
            "target_uuid": base.new_uuid()})
        yield ("release_allocations", {"consumer_uuid": target, "consumer_generation": 1},
               {"consumer_uuid": consumer})
        yield ("claim_by_request", {
            "wanted": request({"VCPU": 1}, member_of=[[uuid]]), "claim": claim(None, consumer)}, {
            "wanted": request({"VCPU": 2}, member_of=[[uuid]])})
        yield "resource_class_create", {"name": name}, {"name": f"{name}_OTHER"}
        yield ("resource_class_rename", {"name": name, "new_name": f"{name}_NEW"},
               {"new_name": f"{name}_OTHER"})
        yield ("resource_class_delete", {"name": f"{name}_NEW"}, {"name": name})
        node = compute_node()
        name_node(node, base.new_uuid())
        yield ("sync_compute_node", {"node": node, "allocations": {}, "snapshot_at": 1.0e9},
               {"snapshot_at": 1.1e9})
        created, not_created = (compute_node() for _ in range(2))
        for each in (created, not_created):
            name_node(each, base.new_uuid())
        yield ("object_action", {"objinst": created, "objmethod": "create", "args": [],
                                 "kwargs": {}}, {"objinst": not_created})
        empty = base.new_uuid()
        client.call("create_provider", name=empty, provider_uuid=empty)
        yield "delete_provider", {"provider_uuid": empty}, {"provider_uuid": uuid}

    def check_refusals_and_batches(self, asking, second):
        uuid, consumer, other = self.provider(asking), base.new_uuid(), base.new_uuid()
        batch = [claim({uuid: {"VCPU": 1}}, consumer), claim({uuid: {"VCPU": 99}}, other)]
        batch_id, refused_id = (f"req-{base.new_uuid()}" for _ in range(2))
        refused = {"claim": batch[1], "request_id": refused_id}
        expected = asking.call("claim_batch", claims=batch, request_id=batch_id)
        self.assertEqual("placement.claim.capacity_exceeded", expected[1]["code"])
        error = asking.ask("claim_allocations", **refused)
        self.assertEqual("placement.claim.capacity_exceeded", error["error"]["code"])
        for client in ("old", "new"):
            again = self.clients[client, second]
            self.assertEqual(_as_replayed(expected), _as_replayed(
                again.call("claim_batch", claims=batch, request_id=batch_id)))
            self.assertEqual(error, again.ask("claim_allocations", **refused))
            self.assertEqual(expected[0]["generations"], again.call(
                "get_request_result", request_id=batch_id)["accepted"]["generations"])
            self.assertEqual(expected[1], again.call(
                "get_request_result", request_id=f"{batch_id}#1")["refused"])
            self.assertEqual({"placement.request.id_reused"}, {each["code"] for each in (
                again.call("claim_batch", request_id=batch_id, claims=[
                    claim({uuid: {"VCPU": 3}}, each) for each in (consumer, other)]))})
        self.assertEqual(2, self.generation(asking, uuid))

    def generation(self, client, uuid):
        return client.call("get_provider", provider_uuid=uuid)["generation"]


def _as_replayed(answer):
    """Return an answer as that to a request that is sent again."""
    if isinstance(answer, list):
        return [_as_replayed(each) for each in answer]
    if isinstance(answer, dict) and "replayed" in answer:
        return {**answer, "replayed": True}
    return without_news(answer)


class FacadeTest(ReleasesTest):
    """The HTTP facades of both releases show one state."""

    scenarios = [(f"{transport} on {kind}", {"transport": transport, "kind": kind})
                 for transport, kind in (("local", "postgresql"), ("local", "mariadb"),
                                         ("rpc", "postgresql"))]

    def setUp(self):
        super().setUp()
        options = {"api": {"transport": self.transport}}
        conductors = []
        if self.transport == "local":
            options["database"] = {"connection": self.store.conf.database.connection}
        else:
            # Either answers either facade.
            options["DEFAULT"] = {"transport_url": self.url}
            conductors = [self.begin(each, self.url, self.store) for each in (self.old, self.new)]
        self.facades = [self.useFixture(side_by_side.Facade(each, options))
                        for each in (self.old, self.new)]
        for each in conductors:
            self.wait_for(each, self.store)

    def send(self, facade, status, method, path, body=None, **headers):
        """Send a request and check its status; returns the response."""
        answer = facade.send(method, path, json=body, headers={
            name.replace("_", "-"): value for name, value in headers.items()})
        self.assertEqual(status, answer.status_code, f"{method} {path}: {answer.text}")
        return answer

    def same(self, path):
        """Check that both facades answer the same; returns the response of one."""
        answers = [self.send(each, 200, "GET", path) for each in self.facades]
        # Each release gives consumers tags of its own.
        tag = "content-length" if path.startswith("/allocations") else "etag"
        first, second = (
            (each.json(), each.headers.get(tag), each.headers.get("content-type"))
            for each in answers)
        self.assertEqual(first, second, path)
        return answers[0]

    def same_classes(self):
        """Check that both facades list the same resource classes.

        The facade of 2026.2 also lists the custom ones that exist from the start.
        """
        first, second = (
            {each["name"] for each in self.send(
                facade, 200, "GET", "/resource_classes").json()["resource_classes"]}
            - class_names.PREDEFINED.keys() for facade in self.facades)
        self.assertEqual(first, second)

    def test_each_reads_what_the_other_wrote(self):
        for writer, reader in (self.facades, reversed(self.facades)):
            self.check(writer, reader)

    def check(self, writer, reader):
        uuid, consumer = base.new_uuid(), base.new_uuid()
        pool, allocations = f"/resource_providers/{uuid}", f"/allocations/{consumer}"
        self.send(writer, 201, "POST", "/resource_providers", {"name": uuid, "uuid": uuid})
        # The ETag of one is the precondition of the other.
        etag = self.same(pool).headers["etag"]
        vcpu = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 4}}}
        self.send(reader, 200, "PUT", f"{pool}/inventories", vcpu, if_match=etag)
        self.send(writer, 412, "PUT", f"{pool}/inventories",
                  {**vcpu, "resource_provider_generation": 1}, if_match=etag)
        self.send(writer, 409, "PUT", f"{pool}/inventories", vcpu)
        self.assertEqual(
            1, self.same(f"{pool}/inventories").json()["resource_provider_generation"])
        self.check_allocations(writer, reader, uuid, consumer)
        self.send(reader, 204, "DELETE", allocations)
        self.assertEqual({}, self.same(allocations).json()["allocations"])
        # An equal key names the request that the other release settled.
        key = base.new_uuid()
        body = {"name": f"new {uuid}"}
        first, second = (self.send(each, 200, "PUT", pool, body, idempotency_key=key)
                         for each in (writer, reader))
        self.assertEqual(first.json(), second.json())
        self.send(reader, 409, "PUT", pool, {"name": f"other {uuid}"}, idempotency_key=key)
        self.same(pool)
        self.same("/resource_providers")
        self.same_classes()
        self.send(writer, 204, "DELETE", pool)
        self.send(reader, 404, "GET", pool)

    def check_allocations(self, writer, reader, uuid, consumer):
        body = {"allocations": [{"resource_provider": {"uuid": uuid}, "resources": {"VCPU": 3}}]}
        self.send(writer, 204, "PUT", f"/allocations/{consumer}", body)
        self.assertEqual({"VCPU": 3}, self.same(
            f"/allocations/{consumer}").json()["allocations"][uuid]["resources"])
        self.same(f"/resource_providers/{uuid}/allocations")
        self.assertEqual({"VCPU": 3}, self.same(
            f"/resource_providers/{uuid}/usages").json()["usages"])
        self.send(reader, 409, "PUT", f"/allocations/{base.new_uuid()}", body)
        # The key names the request that the other release settled, though the owner of the
        # consumer was not known then, and one of the two reads it first.
        for each in (consumer, base.new_uuid()):
            body["allocations"][0]["resources"]["VCPU"] = 1
            key = base.new_uuid()
            for facade in (writer, reader, writer):
                self.send(facade, 204, "PUT", f"/allocations/{each}", body, idempotency_key=key)
            body["allocations"][0]["resources"]["VCPU"] = 2
            for facade in (writer, reader):
                self.send(facade, 409, "PUT", f"/allocations/{each}", body, idempotency_key=key)
            # The tag of each release is known to itself, and to no other.
            for facade, amount in ((writer, 2), (reader, 1)):
                body["allocations"][0]["resources"]["VCPU"] = amount
                tag = self.send(facade, 200, "GET", f"/allocations/{each}").headers["etag"]
                self.send(facade, 204, "PUT", f"/allocations/{each}", body, if_match=tag)
                self.send(facade, 412, "DELETE", f"/allocations/{each}", if_match=tag)
        self.send(writer, 204, "DELETE", f"/allocations/{each}")
