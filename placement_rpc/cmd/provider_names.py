# SPDX-License-Identifier: Apache-2.0
"""Names of providers, for commands that read events: those refer to providers by uuid."""

from placement_rpc import exception

# Seconds; names are a convenience, and no event waits long for one.
_PATIENCE = 2


class ProviderNames:
    """Names that events brought, or that the service answers with.

    A service that does not answer is not asked again.

    :param client: :class:`placement_rpc.api.PlacementAPI`; None to learn from events only
    """

    def __init__(self, client=None):
        self._client = client
        self._names = {}

    def learn(self, event):
        """Keep the name that an event about a provider itself has.

        :param event: :class:`placement_rpc.notifications.event.Event`
        """
        if event.known and event.event_type in (
                "resource_provider.create", "resource_provider.update"):
            self._names[event.payload["provider_uuid"]] = event.payload["name"]

    def name(self, uuid):
        """Return the name of a provider; None if it is not known, or has been deleted."""
        if uuid not in self._names and self._client is not None:
            try:
                self._names[uuid] = self._client.get_provider(None, uuid, timeout=_PATIENCE).name
            except exception.PlacementException as error:
                if isinstance(error, exception.NotFound):
                    self._names[uuid] = None
                else:
                    self._client = None
        return self._names.get(uuid)

    def label(self, uuid):
        """Return the name with the uuid behind it, or the uuid alone."""
        name = self.name(uuid)
        return f"{name} ({uuid})" if name else uuid
