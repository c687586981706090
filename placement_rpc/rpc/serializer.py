# SPDX-License-Identifier: Apache-2.0
"""Versioned objects and request contexts, to and from JSON values."""

from typing import Any

from placement_rpc import objects
from placement_rpc.context import RequestContext
from placement_rpc.objects import base


class Serializer:
    """Converts arguments, results and contexts to JSON values for the bus, and back."""

    def __init__(self) -> None:
        objects.register_all()
        self._entities = base.Serializer()

    def serialize_entity(self, ctxt: RequestContext, entity: Any) -> Any:
        """Return the JSON of a value, at the object versions that the receiver reads."""
        return self._entities.serialize_entity(ctxt, entity, ctxt.receiver)

    def deserialize_entity(self, ctxt: RequestContext, entity: Any) -> Any:
        """Return the value of received JSON.

        :raises IncompatibleObjectVersion: for an object that is newer than this release
        :raises InvalidInput: for a malformed object
        """
        return self._entities.deserialize_entity(ctxt, entity)

    def serialize_context(self, ctxt: RequestContext) -> dict[str, Any]:
        """Return the JSON of a context."""
        return ctxt.to_dict()

    def deserialize_context(self, ctxt: Any) -> RequestContext:
        """Return the context of received JSON.

        :raises InvalidInput: for a malformed context
        """
        return RequestContext.from_dict(ctxt)
