# SPDX-License-Identifier: Apache-2.0
"""The server's end of the calls about resource classes."""

from placement_rpc.accounting import (
    idempotency,
    reads,
    resource_classes,
)
from placement_rpc.accounting.idempotency import Request
from placement_rpc.context import RequestContext
from placement_rpc.endpoints.base import ManagerBase
from placement_rpc.objects import fields, resource_class
from placement_rpc.objects.base import instance_of
from placement_rpc.objects.resource_class import ResourceClass, ResourceClassList
from placement_rpc.rpc.endpoint import as_limit, exposed, optional, require_fields


class ResourceClassEndpoint(ManagerBase):

    @exposed
    def resource_class_list(self, context: RequestContext, marker: str | None = None,
                            limit: int | None = None) -> ResourceClassList:
        return reads.resource_class_page(
            self.database, optional(fields.ClassName(), "marker", marker), as_limit(limit))

    @exposed
    def resource_class_get(self, context: RequestContext, name: str) -> ResourceClass:
        return reads.resource_class(self.database, name)

    @exposed
    def resource_class_create(self, context: RequestContext, given: ResourceClass,
                              request_id: str) -> ResourceClass:
        require_fields(instance_of(ResourceClass, "given", given), "name")
        asked = Request.of(request_id, "resource_class_create", {"class": given})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: resource_classes.create(tx, outbox, given.name))

    @exposed
    def resource_class_rename(self, context: RequestContext, name: str, given: ResourceClass,
                              request_id: str) -> ResourceClass:
        require_fields(instance_of(ResourceClass, "given", given), "name")
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_rename", {"class": given, "of": name})
        return idempotency.run_once(
            context, asked,
            lambda tx, outbox: resource_classes.rename(tx, outbox, name, given.name))

    @exposed
    def resource_class_delete(self, context: RequestContext, name: str, request_id: str) -> None:
        name = resource_class.canonical(name)
        asked = Request.of(request_id, "resource_class_delete", {"name": name})
        return idempotency.run_once(
            context, asked, lambda tx, outbox: resource_classes.delete(tx, outbox, name))
