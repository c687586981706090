# SPDX-License-Identifier: Apache-2.0
"""Reading of events from the HTTP facade, page by page."""

import fnmatch
import json

from osc_lib import exceptions

from placement_rpc.osc import arguments
from placement_rpc.osc import client as placement_client

_PATH = "/events"
_PRUNED = 410


class Reader:
    """A reader that continues from a position, by one page with every call.

    ``position`` is the position after which the next page begins: an int as str, ``now``, or None
    to begin with the oldest event that is kept.

    :param client: :class:`placement_rpc.osc.client.Client`
    :param position: str or None
    """

    def __init__(self, client, position=None):
        self._client = client
        self.position = position

    def page(self, limit=None, wait=None):
        """Read the next events.

        :param limit: int, the maximum number; None for the server's
        :param wait: int, seconds that the server may wait for the first event
        :returns: list of dicts, each with ``position``, ``event_type``, ``event_id``,
            ``occurred_at`` and ``payload``; empty if there are no more events yet
        :raises placement_rpc.osc.client.Refused: if the server answers with an error
        :raises osc_lib.exceptions.CommandError: if the events after the position are not kept any
            more
        :raises keystoneauth1.exceptions.ClientException: if there is no answer
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
        self.position = placement_client.header_of(response, "placement-position")
        # Not splitlines, which also splits at separators that a text may contain.
        return [json.loads(line) for line in response.content.split(b"\n") if line.strip()]


def add_filters(parser):
    """Add the options that select events to an argparse parser."""
    parser.add_argument("--event-type", metavar="GLOB",
                        help="show only these types, for example 'allocation.*'")
    parser.add_argument("--provider", type=arguments.uuid, metavar="UUID",
                        help="show only events of this resource provider")


def wanted(event, options):
    """Return whether the options select an event."""
    if options.event_type and not fnmatch.fnmatchcase(event["event_type"], options.event_type):
        return False
    return not options.provider or options.provider.lower() in providers_of(event["payload"])


def providers_of(payload):
    """Return the uuids of the providers in a payload, as a set."""
    found = {each.get("provider_uuid") for each in payload.get("providers") or ()}
    found.update(payload.get("allocations") or ())
    found.add(payload.get("provider_uuid"))
    return found - {None}
