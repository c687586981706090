# SPDX-License-Identifier: Apache-2.0
"""The client's calls about events, explanations, and the service itself."""

from typing import Any

from oslo_context.context import RequestContext

from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.event_page import EventPage, EventPositions
from placement_rpc.objects.explanation import ExplanationList
from placement_rpc.objects.fields import Text
from placement_rpc.objects.headroom import Headroom
from placement_rpc.objects.request import ResourceRequest
from placement_rpc.objects.request_result import RequestResult
from placement_rpc.objects.service import ServiceList
from placement_rpc.rpc.client import Client

_SERVER = Text(255)


class ServiceCalls(Client):

    def explain(self, context: RequestContext | None,
                wanted: ResourceRequest | CandidatesRequest, marker: str | None = None,
                limit: int | None = None, timeout: float | None = None,
                funnel: bool = False) -> ExplanationList:
        """Return which providers fit a request, and for the others which rules fail.

        For a request with groups, the answer has trees in place of providers, each under its
        root.

        :param wanted: its limit is ignored
        :param marker: uuid of the provider, or of the root, after which to begin
        :param limit: the most providers to return; the service may return fewer
        :param funnel: whether the answer also says how many providers of the fleet each rule
            leaves
        :raises ResourceClassNotFound: if there is no such class
        :raises TraitNotFound: if there is no such trait
        :raises ProviderNotFound: if there is no provider of the marker
        """
        return self._call(context, "explain", timeout, wanted=wanted, marker=marker, limit=limit,
                          funnel=funnel or None)

    def get_headroom(self, context: RequestContext | None,
                     wanted: ResourceRequest | CandidatesRequest, by: str | None = None,
                     timeout: float | None = None) -> Headroom:
        """Return how many more such requests fit, if they are claimed one after the other.

        :param wanted: its limit is ignored; of a ``ResourceRequest`` one provider has to have all
            amounts
        :param by: ``aggregate``, ``trait`` or ``class-limit`` to break the number down; None for
            the number alone
        :raises ResourceClassNotFound: if there is no such class
        :raises TraitNotFound: if there is no such trait
        """
        return self._call(context, "get_headroom", timeout, wanted=wanted, by=by)

    def verify_index(self, context: RequestContext | None, server: str | None = None,
                     after: int = 0, limit: int | None = None,
                     timeout: float | None = None) -> dict[str, Any] | None:
        """Have a conductor compare a part of its candidate index with the store.

        :param server: which conductor: its host, binary and worker, joined by dots; None for any
        :param after: the provider row id after which to begin
        :param limit: the most providers to compare; the service may compare fewer
        :returns: dict of ``providers``, ``inventories``, ``bytes``, ``position``,
            ``differences`` (provider row id to text) and ``next`` (None at the end); None if the
            conductor has no index
        """
        if server is not None:
            server = _SERVER.coerce(None, "server", server)
        return self._call(context, "verify_index", timeout, server=server, after=after,
                          limit=limit)

    def get_event_positions(self, context: RequestContext | None,
                            timeout: float | None = None) -> EventPositions:
        """Return the positions of the oldest and of the newest event.

        A program that reads these, then lists, and then follows the events after ``last`` misses
        nothing.
        """
        return self._call(context, "get_event_positions", timeout)

    def list_events(self, context: RequestContext | None, after: int | None = None,
                    limit: int | None = None, timeout: float | None = None) -> EventPage:
        """Return events in the order of their positions.

        :param after: the position after which to begin; None for the oldest that is kept
        :param limit: the most events to return; the service may return fewer
        :raises EventsPruned: if some of these events are no longer kept
        :raises InvalidInput: for a position that was not assigned yet
        """
        return self._call(context, "list_events", timeout, after=after, limit=limit)

    def get_request_result(self, context: RequestContext | None, request_id: str,
                           timeout: float | None = None) -> RequestResult:
        """Return the stored outcome of a request; its ``result()`` returns or raises it.

        :param request_id: for an entry of a batch, the batch's id for the first, and with ``#``
            and its place, as ``ID#1``, for each further one
        :raises RequestNotFound: if nothing is stored under the id
        """
        return self._call(context, "get_request_result", timeout, settled_id=request_id)

    def ping(self, context: RequestContext | None,
             timeout: float | None = None) -> dict[str, Any]:
        """Return host, pid, version, rpc_version and time of the process that answers."""
        return self._call(context, "ping", timeout)

    def get_versions(self, context: RequestContext | None,
                     timeout: float | None = None) -> ServiceList:
        """Return the processes of the service, with their releases."""
        return self._call(context, "get_versions", timeout)
