# SPDX-License-Identifier: Apache-2.0
"""The client's end of the calls that look into things: a part of PlacementAPI."""

from placement_rpc.calls import Calls


class QueryCalls(Calls):
    """Calls about events and reasons; :class:`placement_rpc.api.PlacementAPI` says what all
    take."""

    def explain(self, context, wanted, marker=None, limit=None, timeout=None):
        """Which providers fit a request, and for each that does not, which rules fail.

        :param wanted: :class:`placement_rpc.objects.request.ResourceRequest`; its limit is not
            looked at
        :param marker: str, uuid of the provider after which to begin
        :param limit: int, how many providers at the most; the service may answer fewer
        :returns: :class:`placement_rpc.objects.explanation.ExplanationList`
        :raises ResourceClassNotFound: :raises ProviderNotFound: when the marker is none
        """
        return self._call(context, "explain", timeout, wanted=wanted, marker=marker, limit=limit)

    def verify_index(self, context, server=None, after=0, limit=None, timeout=None):
        """Have a conductor compare a part of its candidate index with the store.

        :param server: str, which one: its host, binary and worker with dots between them; None
            for whichever answers
        :param after: int, the provider row id after which to begin
        :param limit: int, how many providers at the most; the service may look at fewer
        :returns: dict of ``providers``, ``inventories``, ``bytes``, ``position``,
            ``differences`` (provider row id to text) and ``next`` (None at the end); None where
            the conductor has no index
        """
        return self._call(context, "verify_index", timeout, server=server, after=after,
                          limit=limit)

    def get_event_positions(self, context, timeout=None):
        """Where the events begin and end.

        Who reads this, then lists, and then follows the events after ``last`` misses nothing.

        :returns: :class:`placement_rpc.objects.event_page.EventPositions`
        """
        return self._call(context, "get_event_positions", timeout)

    def list_events(self, context, after=None, limit=None, timeout=None):
        """Events by their position.

        :param after: int, the position after which to begin; None for the oldest that is kept
        :param limit: int, how many at the most; the service may answer fewer
        :returns: :class:`placement_rpc.objects.event_page.EventPage`
        :raises EventsPruned: :raises InvalidInput: for a position that was not given yet
        """
        return self._call(context, "list_events", timeout, after=after, limit=limit)
