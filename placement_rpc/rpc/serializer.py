# SPDX-License-Identifier: Apache-2.0
"""Versioned objects and request contexts, to and from JSON values."""

import oslo_messaging

from placement_rpc import objects
from placement_rpc.context import RequestContext
from placement_rpc.objects import base


class Serializer(oslo_messaging.Serializer):
    """Objects and contexts, to and from what travels."""

    def __init__(self):
        objects.register_all()
        self._entities = base.Serializer()

    def serialize_entity(self, ctxt, entity):
        return self._entities.serialize_entity(ctxt, entity, ctxt.receiver)

    def deserialize_entity(self, ctxt, entity):
        return self._entities.deserialize_entity(ctxt, entity)

    def serialize_context(self, ctxt):
        return ctxt.to_dict()

    def deserialize_context(self, ctxt):
        return RequestContext.from_dict(ctxt)
