# SPDX-License-Identifier: Apache-2.0
"""Changes to the aggregates of a provider.

The API replaces the whole list (specification generic-resource-pools, ``PUT
/resource_providers/{uuid}/aggregates``), so each change reads the current list first.
"""

from osc_lib import exceptions

from placement_rpc.osc import retry


def associate(client, kind, uuid, aggregates):
    """Add aggregates to those of a provider.

    :param client: :class:`placement_rpc.osc.client.Client`
    :param kind: :class:`placement_rpc.osc.resource_types.Kind`
    :param uuid: str, the provider
    :param aggregates: list of str, uuids
    :raises placement_rpc.osc.client.Refused: if the server answers with an error
    """
    def more(present):
        known = {each.lower() for each in present}
        return present + [each for each in dict.fromkeys(aggregates)
                          if each.lower() not in known]

    _change(client, kind, uuid, more)


def disassociate(client, kind, uuid, aggregate):
    """Remove an aggregate from those of a provider.

    :param aggregate: str, a uuid; the other parameters are those of :func:`associate`
    :raises osc_lib.exceptions.CommandError: if the provider is not in it
    :raises placement_rpc.osc.client.Refused: if the server answers with an error
    """
    def less(present):
        left = [each for each in present if each.lower() != aggregate.lower()]
        if left == present:
            raise exceptions.CommandError(
                f"{kind.name} {uuid} is not associated with aggregate {aggregate}")
        return left

    _change(client, kind, uuid, less)


def _change(client, kind, uuid, new_from):
    client.need(1, "aggregates")
    path = kind.path(uuid, "aggregates")

    def write(found):
        document, etag = found
        new = new_from(document["aggregates"])
        if new != document["aggregates"]:
            client.send("PUT", path, new, etag)

    retry.change(lambda: client.read(path), write)
