# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about events, explanations, and the service itself."""

import os
import socket
import time

import placement_rpc
from placement_rpc.accounting import (
    reads,
)
from placement_rpc.candidates import explanation, surveys
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import fields, request
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.candidates import CandidatesRequest
from placement_rpc.objects.event_page import EventPage, EventPositions
from placement_rpc.objects.explanation import ExplanationList
from placement_rpc.objects.headroom import BY, Headroom
from placement_rpc.objects.request_result import RequestResult
from placement_rpc.objects.service import ServiceList
from placement_rpc.rpc.endpoint import (
    UUID,
    as_bool,
    as_limit,
    exposed,
    optional,
    require_fields,
)


class ServiceEndpoint(ManagerBase):

    @exposed
    def explain(self, context: RequestContext,
                wanted: request.ResourceRequest | CandidatesRequest, marker: str | None = None,
                limit: int | None = None, funnel: bool | None = None) -> ExplanationList:
        _check(wanted)
        after = optional(UUID, "marker", marker)
        if isinstance(wanted, CandidatesRequest):
            found = surveys.explained_trees(
                self.candidates.index, wanted, after, as_limit(limit), context.deadline)
        else:
            # Read before the index, which may not have what happens between the two.
            position = reads.last_position(self.database)
            found = explanation.explain(wanted, self.candidates.views(
                wanted, after, as_limit(limit), context.deadline))
            found.position = position
        if as_bool("funnel", funnel):
            found.funnel = surveys.funnel_of(self.candidates.index, wanted, context.deadline)
        return found

    @exposed
    def get_headroom(self, context: RequestContext,
                     wanted: request.ResourceRequest | CandidatesRequest,
                     by: str | None = None) -> Headroom:
        _check(wanted)
        if by is not None:
            fields.Choice(BY).coerce(None, "by", by)
        return surveys.headroom_of(self.candidates.index, wanted, by, context.deadline)

    @exposed
    def verify_index(self, context: RequestContext, after: int = 0,
                     limit: int | None = None) -> dict | None:
        return self.candidates.index.verify(
            fields.WholeNumber(maximum=2 ** 62).coerce(None, "after", after), as_limit(limit))

    @exposed
    def get_event_positions(self, context: RequestContext) -> EventPositions:
        return reads.event_positions(self.database)

    @exposed
    def list_events(self, context: RequestContext, after: int | None = None,
                    limit: int | None = None) -> EventPage:
        if after is not None:
            after = fields.WholeNumber(maximum=2 ** 63 - 1).coerce(None, "after", after)
        # An answer is larger than its events: a quotation mark becomes two or four characters.
        return reads.events_after(
            self.database, after, as_limit(limit),
            self.conf.messages.max_answer // 8, context.receiver)

    @exposed
    def get_request_result(self, context: RequestContext, settled_id: str) -> RequestResult:
        return reads.request_result(
            self.database, fields.RequestId(part=True).coerce(None, "settled_id", settled_id))

    @exposed
    def ping(self, context: RequestContext) -> dict:
        """Answer without the store, to show that the bus works and a server listens."""
        return {"host": self.conf.conductor.host or socket.gethostname(), "pid": os.getpid(),
                "version": placement_rpc.__version__, "rpc_version": self.release.contract,
                "time": time.time()}

    @exposed
    def get_versions(self, context: RequestContext) -> ServiceList:
        return reads.services(self.database, self.conf.conductor.service_down_time)


def _check(wanted):
    """Check a request, with or without groups.

    :raises InvalidInput: if it is neither, or asks for nothing
    """
    if isinstance(wanted, CandidatesRequest):
        require_fields(wanted, "groups").check()
    else:
        require_fields(instance_of(request.ResourceRequest, "wanted", wanted), "resources")
