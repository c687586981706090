# SPDX-License-Identifier: Apache-2.0
"""Trees of providers. The parent and the root of a root are NULL."""

import sqlalchemy as sa

from placement_rpc.db import models
from placement_rpc.db.queries import bulk

_providers = models.resource_providers

_MEMBERS = sa.select(
    _providers.c.id, _providers.c.uuid, _providers.c.name, _providers.c.generation,
    _providers.c.parent_provider_id.label("parent_id"))


def members(tx, root_id):
    """Return the providers of a tree.

    :param root_id: int, row id of its root
    :returns: dict of row id to row of id, uuid, name, generation and parent_id, which is None
        for the root
    """
    rows = tx.execute(_MEMBERS.where(sa.or_(
        _providers.c.id == root_id, _providers.c.root_provider_id == root_id)))
    return {row.id: row for row in rows}


def has_children(tx, provider_id):
    """Return whether a provider is the parent of another."""
    return tx.execute(sa.select(_providers.c.id).where(
        _providers.c.parent_provider_id == provider_id).limit(1)).first() is not None


def move(tx, provider_ids, root_id):
    """Give providers another root.

    :param provider_ids: list of row ids
    :param root_id: int; None for a root itself
    """
    if provider_ids:
        tx.execute(sa.update(_providers).where(_providers.c.id.in_(provider_ids)).values(
            root_provider_id=root_id, updated_at=bulk.now()))


def set_parent(tx, provider_id, parent_id):
    """Give a provider another parent; its root is left as it is.

    :param parent_id: int; None for no parent
    """
    tx.execute(sa.update(_providers).where(_providers.c.id == provider_id).values(
        parent_provider_id=parent_id, updated_at=bulk.now()))
