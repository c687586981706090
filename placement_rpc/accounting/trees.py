# SPDX-License-Identifier: Apache-2.0
"""Trees of resource providers: create, move and detach a child.

A transaction locks all providers that its change of a tree concerns. For a new child these are
the parent and the root, whose rows the foreign keys lock too. For a move they are all providers of
the tree that the provider leaves, the new parent and its root. One statement locks the rows in the
order of their uuids, as in all other changes. After that the transaction reads the tree again. If
it has changed, the transaction is repeated.

Nodes of a Galera cluster do not see each other's locks. There a change of a tree also writes the
root of each tree that it concerns, so that two changes of one tree conflict.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from placement_rpc import exception
from placement_rpc.db import api as db
from placement_rpc.db.queries import claims, providers
from placement_rpc.db.queries import trees as queries


@dataclasses.dataclass(frozen=True, slots=True)
class Follower:
    """A provider below one that moves to another tree."""

    id: int
    uuid: str
    name: str
    generation: int
    parent_uuid: str


@dataclasses.dataclass(frozen=True, slots=True)
class Move:
    """What a move changed besides the provider itself.

    :param root_uuid: the root of the provider now
    :param followers: the providers below it, if their root is another now
    """

    root_uuid: str
    followers: Sequence[Follower]


def lock_parent(tx: db.Connection, uuid: str) -> Any:
    """Lock the parent of a new provider, and its root.

    The foreign keys lock the root when the provider is inserted. It is locked in order before, or
    a claim that holds the root and waits for the parent would wait for ever.

    :returns: its row, as of :func:`placement_rpc.db.queries.providers.get`
    :raises ParentNotFound: if there is no such provider
    :raises placement_rpc.db.api.Stale: if it was moved or deleted meanwhile
    """
    row = providers.get(tx, uuid)
    if row is None:
        raise exception.ParentNotFound(parent=uuid)
    claims.lock_providers(tx, {row.uuid, row.root_uuid})
    locked = providers.get(tx, uuid)
    if locked is None or locked.root_id != row.root_id:
        raise db.Stale("a tree of resource providers")
    claims.touch(tx, providers={row.root_id})
    return locked


def lock_move(tx: db.Connection, uuid: str, parent_uuid: str | None) -> None:
    """Lock all that a provider's move to a parent concerns; None for no parent.

    A provider that does not exist is ignored.

    :raises placement_rpc.db.api.Stale: if a tree changed meanwhile
    """
    concerned = _concerned(tx, uuid, parent_uuid)
    claims.lock_providers(tx, concerned)
    if _concerned(tx, uuid, parent_uuid) != concerned:
        raise db.Stale("a tree of resource providers")


def _concerned(tx, uuid, parent_uuid):
    """Return the uuids of the providers that a move concerns."""
    found = set()
    row = providers.get(tx, uuid)
    if row is not None:
        found.update(each.uuid for each in queries.members(tx, row.root_id).values())
    parent = parent_uuid and providers.get(tx, parent_uuid)
    if parent:
        found.update((parent.uuid, parent.root_uuid))
    return found


def check_no_loop(tx: db.Connection, row: Any, parent: Any) -> None:
    """Check that a provider stays out of a loop if it gets a parent.

    :param row: the provider, as of :func:`placement_rpc.db.queries.providers.get`
    :param parent: the same of the parent
    :raises TreeLoop: if the parent is the provider itself, or below it
    """
    if parent.id in {row.id, *_below(queries.members(tx, row.root_id), row.id)}:
        raise exception.TreeLoop(provider=row.uuid, parent=parent.uuid)


def move(tx: db.Connection, row: Any, parent: Any) -> Move:
    """Give a provider another parent, and all below it the root that it has then.

    The caller holds the locks of :func:`lock_move`, has checked that there is no loop, and raises
    the generations.

    :param row: the provider, as of :func:`placement_rpc.db.queries.providers.get`
    :param parent: the same of the parent; None for no parent
    """
    tree = queries.members(tx, row.root_id)
    below = _below(tree, row.id)
    root_id, root_uuid = (parent.root_id, parent.root_uuid) if parent else (row.id, row.uuid)
    claims.touch(tx, providers={row.root_id, root_id})
    queries.set_parent(tx, row.id, parent and parent.id)
    if root_id == row.root_id:
        return Move(root_uuid, ())
    queries.move(tx, [row.id], None if root_id == row.id else root_id)
    queries.move(tx, list(below), root_id)
    return Move(root_uuid, [
        Follower(id_, tree[id_].uuid, tree[id_].name, tree[id_].generation,
                 tree[tree[id_].parent_id].uuid) for id_ in sorted(below)])


def _below(tree, provider_id):
    """Return the ids of all providers below one, as a set."""
    children: dict[int, list[int]] = {}
    for row in tree.values():
        children.setdefault(row.parent_id, []).append(row.id)
    found, waiting = set(), [provider_id]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found
