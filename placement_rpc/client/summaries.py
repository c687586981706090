# SPDX-License-Identifier: Apache-2.0
"""The client's calls that read the whole store in pages, for programs that compare it."""

from collections.abc import Iterator

from oslo_context.context import RequestContext

from placement_rpc.objects.summaries import (
    ConsumerSummary,
    ConsumerSummaryList,
    ProviderSummary,
    ProviderSummaryList,
    all_objects,
)
from placement_rpc.rpc.client import Client


class SummaryCalls(Client):

    def list_provider_summaries(self, context: RequestContext | None, marker: str | None = None,
                                limit: int | None = None,
                                timeout: float | None = None) -> ProviderSummaryList:
        """Return a page of all providers, with inventories, usages, traits and aggregates.

        Pages are in the order of uuids. A provider that exists while all pages are read is in
        exactly one of them.

        :param marker: uuid after which to begin, which need not exist any more; None for the
            first page
        :param limit: the most providers to return; a service returns 1000 at most
        """
        return self._call(context, "list_provider_summaries", timeout, marker=marker, limit=limit)

    def list_consumers(self, context: RequestContext | None, project_id: str | None = None,
                       user_id: str | None = None, provider_uuid: str | None = None,
                       marker: str | None = None, limit: int | None = None,
                       timeout: float | None = None) -> ConsumerSummaryList:
        """Return a page of consumers, with all of their allocations.

        All conditions have to be met; without any, the pages have every consumer. Their order is
        that of the uuids, as of :meth:`list_provider_summaries`.

        :param project_id: only consumers of this project
        :param user_id: only consumers of this user
        :param provider_uuid: only consumers that have allocations from this provider; what they
            have from others is in the answer too
        :param marker: as of :meth:`list_provider_summaries`
        :param limit: the most consumers to return; a service returns 1000 at most
        :raises ProviderNotFound: if there is no such provider
        """
        return self._call(
            context, "list_consumers", timeout, project_id=project_id, user_id=user_id,
            provider_uuid=provider_uuid, marker=marker, limit=limit)

    def all_provider_summaries(self, context: RequestContext | None, page: int | None = None,
                               timeout: float | None = None) -> Iterator[ProviderSummary]:
        """Return a generator of all providers, which reads a page when it is needed.

        :param page: the most providers of a page
        :param timeout: seconds for each page
        """
        return all_objects(lambda marker: self.list_provider_summaries(
            context, marker=marker, limit=page, timeout=timeout))

    def all_consumers(self, context: RequestContext | None, project_id: str | None = None,
                      user_id: str | None = None, provider_uuid: str | None = None,
                      page: int | None = None,
                      timeout: float | None = None) -> Iterator[ConsumerSummary]:
        """Return a generator of all consumers that meet the conditions of :meth:`list_consumers`.

        :param page: the most consumers of a page
        :param timeout: seconds for each page
        :raises ProviderNotFound: if there is no such provider, also if it is deleted meanwhile
        """
        return all_objects(lambda marker: self.list_consumers(
            context, project_id=project_id, user_id=user_id, provider_uuid=provider_uuid,
            marker=marker, limit=page, timeout=timeout))
