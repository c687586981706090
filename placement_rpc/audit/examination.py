# SPDX-License-Identifier: Apache-2.0
"""Compare the store with what nova knows.

The consumers are read once, page by page, and each is judged when it is read. Those that nova does
not know are judged last, when it is known what the servers hold.
"""

import dataclasses
import datetime
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from placement_rpc.audit.findings import Finding
from placement_rpc.audit.known import ERROR, ON_NO_HOST, OVER, Known
from placement_rpc.audit.listings import Migration, Server
from placement_rpc.audit.trees import Trees
from placement_rpc.objects import codec
from placement_rpc.objects.summaries import ConsumerSummary
from placement_rpc.spool import Spool

#: The types of the consumers that nova has, in addition to those without a type.
INSTANCE, MIGRATION = "INSTANCE", "MIGRATION"
_OF_NOVA = (None, INSTANCE, MIGRATION)
_AT_ONCE = 500
_NO_STATUS = ("the list of servers has no status, so a move may be under way; give --migrations, "
              "or a list with the column Status")
_MOVING = "nova is moving the server"
_IN_ERROR = "the server is in ERROR; set its state first"


@dataclasses.dataclass
class Counts:
    """How much an audit has looked at, and what it has left out."""

    servers: int = 0
    consumers: int = 0
    providers: int = 0
    #: changed after the lists were taken, or too shortly before
    recent: int = 0
    #: of types that are not nova's
    of_other_services: int = 0


class Examination:
    """One audit.

    :param known: what nova said
    :param trees: all providers
    :param before: what changed after this time is not judged, UTC in ISO 8601
    :param released_since: callable that returns which of some consumers have released all
        since that time
    :ivar counts: :class:`Counts`, complete when all findings were read
    """

    def __init__(self, known: Known, trees: Trees, before: datetime.datetime,
                 released_since: Callable[[Collection[str]], Collection[str]]):
        self._known, self._trees = known, trees
        self._before = before.isoformat(timespec="microseconds")
        self._released_since = released_since
        self.counts = Counts(servers=len(known.servers), providers=len(trees.nodes))
        # Project and user of the servers that are being moved, to the uuids of these. The user is
        # None if it is not known, and so is the project.
        self._moving: dict[tuple[str | None, str | None], list[str]] = {}

    def findings(self, consumers: Iterable[ConsumerSummary]) -> Iterator[Finding]:
        """Return a generator of all that is wrong.

        :param consumers: all of them
        """
        with Spool() as unknown:
            yield from self._of_consumers(consumers, unknown)
            if len(unknown):
                self._find_moving()
            for values in unknown:
                yield self._of_unknown(codec.stored(ConsumerSummary, **values))
        yield from self._missing()
        yield from self._unserved()

    def _of_consumers(self, consumers: Iterable[ConsumerSummary], unknown: Spool,
                      ) -> Iterator[Finding]:
        """Yield what is wrong with servers; collect the consumers that nova does not know."""
        for consumer in consumers:
            self.counts.consumers += 1
            server = self._seen(consumer)
            if consumer.consumer_type not in _OF_NOVA:
                self.counts.of_other_services += 1
            elif consumer.updated_at > self._before:
                self.counts.recent += 1
            elif server is None:
                unknown.append({name: consumer.value(name) for name in consumer.fields})
            else:
                yield from self._of_server(consumer, server)

    def _seen(self, consumer: ConsumerSummary) -> Server | None:
        """Return the server that a consumer is; note that it holds something."""
        servers = self._known.servers
        number = servers.find(consumer.uuid)
        if number is None:
            return None
        servers.holds[number] = 1
        servers.sign(number, _signature(consumer))
        server = servers.get(number)
        if self._known.is_moving(server):
            self._moving.setdefault(
                (consumer.project_id, consumer.user_id), []).append(server.uuid)
        return server

    def _find_moving(self) -> None:
        """Find the servers that are being moved and hold nothing, which their migrations may do.
        """
        servers = self._known.servers
        for number, holds in enumerate(servers.holds):
            server = None if holds else servers.get(number)
            if server is not None and self._known.is_moving(server):
                self._moving.setdefault((server.project_id, None), []).append(server.uuid)

    def _compute_nodes(self, consumer: ConsumerSummary) -> list[str]:
        """Return the roots of the compute nodes that a consumer holds on."""
        nodes = self._trees.nodes
        # A provider may have been created since they were read.
        roots = {nodes[uuid].root for uuid in consumer.allocations if uuid in nodes}
        return sorted(roots & self._trees.compute_nodes)

    # -- a server of nova's ---------------------------------------------------------

    def _of_server(self, consumer: ConsumerSummary, server: Server) -> Iterator[Finding]:
        held = self._compute_nodes(consumer)
        hosts = self._trees.of_host(server.host) if server.host else frozenset()
        if len(held) > 1:
            yield self._doubled(consumer, server, held, hosts)
        elif server.host is not None and not hosts & set(held):
            yield self._misplaced(consumer, server, held, hosts)

    def _doubled(self, consumer, server, held, hosts):
        obstacle = self._obstacle(server)
        right = hosts & set(held)
        if obstacle is None and len(right) != 1:
            obstacle = "nova names no host that is one of them"
        wanted = None if obstacle else {
            uuid: resources for uuid, resources in consumer.allocations.items()
            if self._root(uuid) in right or self._root(uuid) not in held}
        return self._about(
            consumer, held, kind="doubled", server=server.uuid, host=server.host,
            detail=f"The server holds on {len(held)} compute nodes",
            correction=None if obstacle else "keep", obstacle=obstacle, wanted=wanted,
            is_under_way=self._known.is_moving(server))

    def _misplaced(self, consumer, server, held, hosts):
        obstacle, correction, wanted = self._obstacle(server), None, None
        if not server.host:
            detail = "Nova says that the server is on no host"
            if obstacle is None and server.status not in ON_NO_HOST:
                obstacle = f"its status is {server.status}, and nova may still place it"
            correction = None if obstacle else "release"
        else:
            detail = "The server holds on another compute node than nova's" if held else (
                "The server holds nothing on a compute node")
            if obstacle is None:
                wanted, obstacle = self._moved(consumer, held, hosts)
            correction = None if obstacle else "move"
        return self._about(
            consumer, held, kind="misplaced", server=server.uuid, host=server.host,
            detail=detail, correction=correction, obstacle=obstacle, wanted=wanted,
            is_under_way=self._known.is_moving(server))

    def _moved(self, consumer, held, hosts):
        """Return the allocations on the host that nova names, or why there are none."""
        if len(hosts) != 1:
            return None, ("no provider has the name of nova's host" if not hosts else
                          "the host has several compute nodes")
        if not held:
            return None, "what it should hold is not known"
        (source,), (target,) = held, hosts
        below = [uuid for uuid in consumer.allocations if self._root(uuid) == source]
        if below != [source]:
            return None, "it holds from providers below the compute node"
        lacking = sorted(set(consumer.allocations[source]) - self._trees.nodes[target].classes)
        if lacking:
            return None, f"nova's host has no inventory of {', '.join(lacking)}"
        return {target if uuid == source else uuid: resources
                for uuid, resources in consumer.allocations.items()}, None

    def _obstacle(self, server):
        """Return why a server's allocations cannot be corrected; None if they can."""
        if self._known.is_moving(server):
            return _MOVING
        if not self._known.shows_moves:
            return _NO_STATUS
        return _IN_ERROR if server.status == ERROR else None

    def _root(self, uuid):
        return self._trees.nodes[uuid].root if uuid in self._trees.nodes else uuid

    # -- a consumer that is no server -----------------------------------------------

    def _of_unknown(self, consumer: ConsumerSummary) -> Finding:
        held = self._compute_nodes(consumer)
        migrations = self._known.migrations
        if migrations is not None and consumer.uuid in migrations:
            return self._of_migration(consumer, held, migrations[consumer.uuid])
        if migrations is None and consumer.consumer_type != INSTANCE:
            return self._of_a_move(consumer, held)
        return self._released(
            consumer, held, "orphaned", "Nova knows no server of this uuid", None)

    def _of_migration(self, consumer: ConsumerSummary, held: list[str], migration: Migration,
                      ) -> Finding:
        """Return what is wrong with the allocations of a migration."""
        number = self._known.servers.find(migration.server)
        is_over = migration.status in OVER
        what = f"a migration that is {migration.status or 'in no state'}"
        if number is None:
            return self._released(
                consumer, held, "orphaned", f"This is {what}, of a server that nova does not know",
                None if is_over else "the migration is not over")
        server = self._known.servers.get(number)
        return self._released(
            consumer, held, "doubled", f"This is {what}, and the server holds too"
            if self._known.servers.holds[number] else f"This is {what}, of a server that holds "
            "nothing", self._obstacle(server) if is_over else "the migration is not over",
            server=server, is_under_way=not is_over)

    def _of_a_move(self, consumer: ConsumerSummary, held: list[str]) -> Finding:
        """Return what is wrong with a consumer that may be a migration."""
        project, user = consumer.project_id, consumer.user_id
        moving = [uuid for owner in ((project, user), (project, None), (None, None))
                  for uuid in self._moving.get(owner, ())]
        if moving:
            return self._released(
                consumer, held, "doubled", f"This may be the migration of {_one_of(moving)}",
                _MOVING, server=self._server(moving), is_under_way=True)
        same = [each.uuid for each in self._known.servers.signed(_signature(consumer))]
        server = self._server(same)
        obstacle = self._obstacle(server) if server else (
            None if self._known.shows_moves else _NO_STATUS)
        hint = f"; server {server.uuid} of its owner holds as much" if server else ""
        if consumer.consumer_type == MIGRATION:
            return self._released(
                consumer, held, "doubled", f"This is a migration, and no move is under way{hint}",
                obstacle, server=server)
        return self._released(
            consumer, held, "orphaned", f"Nova knows no server of this uuid{hint}", obstacle)

    def _server(self, uuids):
        number = self._known.servers.find(uuids[0]) if len(uuids) == 1 else None
        return None if number is None else self._known.servers.get(number)

    def _released(self, consumer, held, kind, detail, obstacle, server=None, is_under_way=False):
        return self._about(
            consumer, held, kind=kind, detail=detail, server=server and server.uuid,
            host=server and server.host, correction=None if obstacle else "release",
            obstacle=obstacle, is_under_way=is_under_way)

    def _about(self, consumer: ConsumerSummary, held: list[str], **values) -> Finding:
        """Return a finding about a consumer, with all that its correction needs."""
        return Finding(
            uuid=consumer.uuid, project_id=consumer.project_id,
            allocations=consumer.allocations,
            held_on=tuple(self._trees.nodes[uuid].name for uuid in held),
            consumer={name: consumer.value(name) for name in (
                "project_id", "user_id", "consumer_type", "generation", "tag")}, **values)

    # -- servers that hold nothing, and providers -------------------------------------

    def _missing(self) -> Iterator[Finding]:
        servers = self._known.servers
        empty = (servers.get(number) for number, holds in enumerate(servers.holds) if not holds)
        wanting = (server for server in empty
                   if server.status not in ON_NO_HOST and server.host != "")
        while some := list(itertools.islice(wanting, _AT_ONCE)):
            # Those that nova deleted after the list was taken.
            released = self._released_since([each.uuid for each in some])
            self.counts.recent += len(released)
            for server in some:
                if server.uuid not in released:
                    yield Finding(
                        "missing", server.uuid, "The server holds nothing", server=server.uuid,
                        host=server.host, project_id=server.project_id,
                        is_under_way=self._known.is_moving(server),
                        obstacle="what it should hold is not known: run 'nova-manage placement "
                                 f"heal_allocations --instance {server.uuid}'")

    def _unserved(self) -> Iterator[Finding]:
        if self._known.services is None:
            return
        for uuid in sorted(self._trees.compute_nodes - self._trees.served(self._known.services)):
            below = self._trees.below(uuid)
            if any(each.updated_at > self._before for each in below):
                self.counts.recent += 1
                continue
            obstacle = "allocations are held from it" if any(
                each.is_used for each in below) else None
            yield Finding(
                "unserved", uuid, "Nova knows no compute service of this name",
                name=self._trees.nodes[uuid].name, held_on=(self._trees.nodes[uuid].name,),
                correction=None if obstacle else "delete", obstacle=obstacle,
                providers=tuple((each.uuid, each.generation) for each in below))


def _one_of(uuids):
    return f"server {uuids[0]}" if len(uuids) == 1 else (
        f"one of {len(uuids)} servers, {', '.join(uuids[:2])}" + (
            " and others" if len(uuids) > 2 else ""))


def _signature(consumer: ConsumerSummary) -> int:
    """Return a number that is the same for consumers of one owner that hold the same amounts."""
    sums: dict[str, int] = {}
    for resources in consumer.allocations.values():
        for name, amount in resources.items():
            sums[name] = sums.get(name, 0) + amount
    # 0 is that of servers that hold nothing.
    return hash((consumer.project_id, consumer.user_id, tuple(sorted(sums.items())))) or 1


def stored_hosts(rows: Iterable) -> Mapping[str, str]:
    """Return the host of each compute node of nova's that the store has, by uuid and by name.

    :param rows: as of :func:`placement_rpc.db.queries.summaries.node_hosts`
    """
    return {key: row.host for row in rows for key in (row.uuid, row.hypervisor_hostname) if key}
