# SPDX-License-Identifier: Apache-2.0
"""Names of providers in tables: events and reasons refer to providers by uuid."""

from keystoneauth1 import exceptions as connection_errors
from osc_lib import exceptions

from placement_rpc.osc import event_reader, resource_types


def of_events(service, events):
    """Return the names of the providers of events; that of a deleted one is in its events alone.

    :param service: :class:`placement_rpc.osc.client.Client`
    :param events: list of dicts, the oldest first
    :returns: dict of provider uuid to name
    """
    known, wanted = {}, set()
    for event in events:
        payload = event["payload"]
        wanted |= event_reader.providers_of(payload)
        if payload.get("provider_uuid") and payload.get("name"):
            known[payload["provider_uuid"]] = payload["name"]
    return known | of_providers(service, wanted - known.keys())


def of_providers(service, uuids):
    """Return the names of providers, read with one request for any number of them.

    Names are a convenience, so there are none if the service does not answer.

    :param service: as of :func:`of_events`
    :param uuids: collection of str
    :returns: dict of provider uuid to name, for those that exist
    """
    if not uuids:
        return {}
    kind = resource_types.PROVIDER
    try:
        document, _ = service.read(kind.path())
    except (exceptions.CommandError, connection_errors.ClientException):
        return {}
    return {each["uuid"]: each["name"] for each in document[kind.collection]
            if each["uuid"] in uuids}
