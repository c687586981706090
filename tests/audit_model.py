# SPDX-License-Identifier: Apache-2.0
"""The rules of audits, written down plainly: the judge of :mod:`placement_rpc.audit`.

It works on plain dicts, and looks at everything for each question.
"""

_MOVING = {"BUILD", "REBUILD", "MIGRATING", "RESIZE", "VERIFY_RESIZE", "REVERT_RESIZE"}
_OVER = {"completed", "confirmed", "reverted", "done", "cancelled", "failed", "error"}


class Model:
    """A cloud, in the store and in nova.

    :param providers: dict of uuid to a dict of name, parent, inventories (set of classes), traits
    :param consumers: dict of uuid to a dict of project, user, type and allocations
    :param servers: dict of uuid to a dict of host, status, task and project; a value is None if
        the list does not have it, and a host is "" if the server has none
    :param migrations: dict of uuid to a tuple of server and status; None if they are not given
    :param services: list of names; None if they are not given
    """

    def __init__(self, providers, consumers, servers, migrations=None, services=None):
        self.providers, self.consumers, self.servers = providers, consumers, servers
        self.migrations, self.services = migrations, services

    def findings(self):
        """Return a set of tuples: kind, uuid, correction, whether nothing is wrong yet."""
        found = set()
        for uuid, consumer in self.consumers.items():
            if consumer["type"] in (None, "INSTANCE", "MIGRATION"):
                found |= {self.of_server(uuid, consumer) if uuid in self.servers
                          else self.of_other(uuid, consumer)}
        for uuid, server in self.servers.items():
            if uuid not in self.consumers and server["host"] != "" and server["status"] not in (
                    "SHELVED_OFFLOADED", "DELETED"):
                found.add(("missing", uuid, None, self.is_moving(uuid)))
        for root in self.compute_nodes():
            if self.services is not None and not any(
                    root in self.of_host(name) or name == root for name in self.services):
                tree = [uuid for uuid in self.providers if self.root(uuid) == root]
                used = any(set(tree) & set(each["allocations"])
                           for each in self.consumers.values())
                found.add(("unserved", root, None if used else "delete", False))
        return found - {None}

    # -- providers --------------------------------------------------------------------

    def root(self, uuid):
        parent = self.providers[uuid]["parent"]
        return uuid if parent is None else self.root(parent)

    def compute_nodes(self):
        names = {str(each["host"]).lower() for each in self.servers.values() if each["host"]} | {
            each.lower() for each in self.services or ()}
        found = set()
        for uuid, provider in self.providers.items():
            if provider["parent"] is None and "MISC_SHARES_VIA_AGGREGATE" not in (
                    provider["traits"]):
                tree = [each for key, each in self.providers.items() if self.root(key) == uuid]
                if any(each["inventories"] & {"VCPU", "PCPU", "MEMORY_MB"} or any(
                        trait.startswith("COMPUTE_") for trait in each["traits"])
                        for each in tree) or {provider["name"].lower(), uuid} & names:
                    found.add(uuid)
        return found

    def of_host(self, host):
        """The roots whose name is the host's; or the only one that differs in a missing domain."""
        roots = {uuid: each["name"].lower() for uuid, each in self.providers.items()
                 if each["parent"] is None
                 and "MISC_SHARES_VIA_AGGREGATE" not in each["traits"]}
        host = (host or "").lower()
        same = {uuid for uuid, name in roots.items() if name == host}
        if "." in host:
            alike = {uuid for uuid, name in roots.items() if name == host.split(".")[0]}
        else:
            alike = {uuid for uuid, name in roots.items() if name.split(".")[0] == host}
        return same or (alike if len(alike) == 1 else set())

    def held(self, consumer):
        return {self.root(uuid) for uuid in consumer["allocations"]} & self.compute_nodes()

    # -- servers ----------------------------------------------------------------------

    def is_moving(self, uuid):
        server = self.servers[uuid]
        return server["status"] in _MOVING or bool(server["task"]) or any(
            server == uuid and status not in _OVER
            for server, status in (self.migrations or {}).values())

    def moves_are_known(self):
        return self.migrations is not None or all(
            each["status"] is not None for each in self.servers.values())

    def may_correct(self, uuid):
        return (self.moves_are_known() and not self.is_moving(uuid)
                and self.servers[uuid]["status"] != "ERROR")

    def of_server(self, uuid, consumer):
        server, held = self.servers[uuid], self.held(consumer)
        hosts = self.of_host(server["host"]) if server["host"] else set()
        may, moving = self.may_correct(uuid), self.is_moving(uuid)
        if len(held) > 1:
            return ("doubled", uuid, "keep" if may and len(held & hosts) == 1 else None, moving)
        if server["host"] is None or held & hosts:
            return None
        if server["host"] == "":
            gone = server["status"] in ("SHELVED_OFFLOADED", "DELETED")
            return ("misplaced", uuid, "release" if may and gone else None, moving)
        return ("misplaced", uuid, "move" if may and self.moved(uuid) else None, moving)

    def moved(self, uuid):
        """The allocations on nova's host; None if they cannot be moved."""
        consumer = self.consumers[uuid]
        held, hosts = self.held(consumer), self.of_host(self.servers[uuid]["host"])
        if len(held) != 1 or len(hosts) != 1:
            return None
        (source,), (target,) = held, hosts
        mine = {each for each in consumer["allocations"] if self.root(each) == source}
        if mine != {source} or not set(consumer["allocations"][source]) <= (
                self.providers[target]["inventories"]):
            return None
        return {target if each == source else each: resources
                for each, resources in consumer["allocations"].items()}

    # -- others -------------------------------------------------------------------------

    def of_other(self, uuid, consumer):
        if self.migrations is not None:
            if uuid not in self.migrations:
                return ("orphaned", uuid, "release", False)
            server, status = self.migrations[uuid]
            if server not in self.servers:
                return ("orphaned", uuid, "release" if status in _OVER else None, False)
            return ("doubled", uuid, "release" if status in _OVER and self.may_correct(server)
                    else None, status not in _OVER)
        if consumer["type"] == "INSTANCE":
            return ("orphaned", uuid, "release", False)
        if self.may_be_moving(consumer):
            return ("doubled", uuid, None, True)
        like = [each for each, other in self.consumers.items()
                if each in self.servers and _amounts(other) == _amounts(consumer)]
        may = self.may_correct(like[0]) if len(like) == 1 else self.moves_are_known()
        kind = "doubled" if consumer["type"] == "MIGRATION" else "orphaned"
        return (kind, uuid, "release" if may else None, False)

    def may_be_moving(self, consumer):
        """Whether nova moves a server that may be this consumer's."""
        for uuid, server in self.servers.items():
            if self.is_moving(uuid):
                other = self.consumers.get(uuid)
                if other is None:
                    if server["project"] in (None, consumer["project"]):
                        return True
                elif (other["project"], other["user"]) == (consumer["project"],
                                                           consumer["user"]):
                    return True
        return False

    # -- corrections --------------------------------------------------------------------

    def correct(self):
        """Make all corrections in the model."""
        for _kind, uuid, correction, _ in sorted(self.findings(), key=str):
            if correction == "release":
                del self.consumers[uuid]
            elif correction == "keep":
                consumer = self.consumers[uuid]
                others = self.held(consumer) - self.of_host(self.servers[uuid]["host"])
                consumer["allocations"] = {
                    each: resources for each, resources in consumer["allocations"].items()
                    if self.root(each) not in others}
            elif correction == "move":
                self.consumers[uuid]["allocations"] = self.moved(uuid)
        # What was released meanwhile does not make a provider free to be deleted at once.


def _amounts(consumer):
    sums = {}
    for resources in consumer["allocations"].values():
        for name, amount in resources.items():
            sums[name] = sums.get(name, 0) + amount
    return consumer["project"], consumer["user"], sums
