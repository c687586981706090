# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls that read the whole store in pages."""

from placement_rpc.accounting import summaries
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import fields
from placement_rpc.objects.summaries import ConsumerSummaryList, ProviderSummaryList
from placement_rpc.rpc.endpoint import UUID, as_limit, exposed, optional

_OWNER = fields.Text(255)


class SummaryEndpoint(ManagerBase):

    @exposed
    def list_provider_summaries(self, context: RequestContext, marker: str | None = None,
                                limit: int | None = None) -> ProviderSummaryList:
        return summaries.provider_page(
            self.database, optional(UUID, "marker", marker), as_limit(limit))

    @exposed
    def list_consumers(self, context: RequestContext, project_id: str | None = None,
                       user_id: str | None = None, provider_uuid: str | None = None,
                       marker: str | None = None,
                       limit: int | None = None) -> ConsumerSummaryList:
        return summaries.consumer_page(
            self.database, optional(UUID, "marker", marker), as_limit(limit),
            optional(_OWNER, "project_id", project_id), optional(_OWNER, "user_id", user_id),
            optional(UUID, "provider_uuid", provider_uuid))
