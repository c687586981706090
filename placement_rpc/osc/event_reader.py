# SPDX-License-Identifier: Apache-2.0
"""Events from the HTTP facade, a page at a time."""

import fnmatch
import json

from osc_lib import exceptions

from placement_rpc.osc import arguments
from placement_rpc.osc import client as placement_client

_PATH = "/events"
_PRUNED = 410


class Reader:
    """Reads on from a position, one page with every call.

    ``position`` is what the next page follows: an int as str, ``now``, or None for before the
    oldest event that is kept.

    :param client: :class:`placement_rpc.osc.client.Client`
    :param position: str or None
    """

    def __init__(self, client, position=None):
        self._client = client
        self.position = position

    def page(self, limit=None, wait=None):
        """The next events.

        :param limit: int, no more than these; None for as many as the server gives at once
        :param wait: int, how many seconds the server may wait for the first one
        :returns: list of dicts, each with ``position``, ``event_type``, ``event_id``,
            ``occurred_at`` and ``payload``; an empty one when there are no more by now
        :raises placement_rpc.osc.client.Refused: when the server will not
        :raises osc_lib.exceptions.CommandError: when the position is no longer kept
        :raises keystoneauth1.exceptions.ClientException: when no answer was had
        """
        query = {"after": self.position, "limit": limit, "wait": wait}
        try:
            response = self._client.send("GET", _PATH, query=query)
        except placement_client.Refused as refused:
            if refused.status != _PRUNED:
                raise
            raise exceptions.CommandError(
                f"{refused}; the oldest event that is kept has position "
                f"{refused.error.get('oldest_position')}") from refused
        self.position = response.headers["placement-position"]
        # Not splitlines: a text may have other separators in it than the line feed.
        return [json.loads(line) for line in response.content.split(b"\n") if line.strip()]


def add_filters(parser):
    """Add what chooses events to an argparse parser."""
    parser.add_argument("--event-type", metavar="GLOB",
                        help="only these, such as 'allocation.*'")
    parser.add_argument("--provider", type=arguments.uuid, metavar="UUID",
                        help="only what is about this resource provider")


def wanted(event, options):
    """Whether an event is among those that the options choose."""
    if options.event_type and not fnmatch.fnmatchcase(event["event_type"], options.event_type):
        return False
    return not options.provider or options.provider.lower() in _providers(event["payload"])


def _providers(payload):
    """The uuids of the providers that a payload is about."""
    found = {each.get("provider_uuid") for each in payload.get("providers") or ()}
    found.update(payload.get("allocations") or ())
    found.add(payload.get("provider_uuid"))
    return found
