# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls that read the whole store in pages."""

from placement_rpc.accounting import summaries
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import fields
from placement_rpc.objects.summaries import ConsumerSummaryList, ProviderSummaryList
from placement_rpc.rpc.endpoint import as_limit, as_uuid, exposed

_OWNER = fields.Text(255)


class SummaryEndpoint(ManagerBase):

    @exposed
    def list_provider_summaries(self, context: RequestContext, marker: str | None = None,
                                limit: int | None = None) -> ProviderSummaryList:
        return summaries.provider_page(self.database, _optional(marker, "marker"),
                                       as_limit(limit))

    @exposed
    def list_consumers(self, context: RequestContext, project_id: str | None = None,
                       user_id: str | None = None, provider_uuid: str | None = None,
                       marker: str | None = None,
                       limit: int | None = None) -> ConsumerSummaryList:
        project_id, user_id = (
            None if value is None else _OWNER.coerce(None, name, value)
            for name, value in (("project_id", project_id), ("user_id", user_id)))
        return summaries.consumer_page(
            self.database, _optional(marker, "marker"), as_limit(limit), project_id, user_id,
            _optional(provider_uuid, "provider_uuid"))


def _optional(value: str | None, name: str) -> str | None:
    """Return a uuid in its canonical spelling; None if none is given."""
    return None if value is None else as_uuid(name, value)
