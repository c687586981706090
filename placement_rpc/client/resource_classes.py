# SPDX-License-Identifier: Apache-2.0
"""The client's calls about resource classes."""

from oslo_context.context import RequestContext

from placement_rpc.objects.resource_class import ResourceClass, ResourceClassList
from placement_rpc.rpc.client import Client


class ResourceClassCalls(Client):

    def resource_class_list(self, context: RequestContext | None, marker: str | None = None,
                            limit: int | None = None,
                            timeout: float | None = None) -> ResourceClassList:
        """Return resource classes in alphabetical order.

        :param marker: the name after which to begin
        :param limit: the most classes to return; the service may return fewer
        """
        return self._call(context, "resource_class_list", timeout, marker=marker, limit=limit)

    def resource_class_get(self, context: RequestContext | None, name: str,
                           timeout: float | None = None) -> ResourceClass:
        """Return a resource class.

        :raises ResourceClassNotFound: if there is no such class
        """
        return self._call(context, "resource_class_get", timeout, name=name)

    def resource_class_create(self, context: RequestContext | None, name: str,
                              request_id: str | None = None,
                              timeout: float | None = None) -> ResourceClass:
        """Create a custom resource class, ``CUSTOM_...``.

        :raises ResourceClassExists: if there is a custom class of the name
        :raises ResourceClassStandard: if there is a standard class of the name
        """
        return self._change(context, "resource_class_create", request_id, timeout,
                            given=ResourceClass(name=name))

    def resource_class_rename(self, context: RequestContext | None, name: str, new_name: str,
                              request_id: str | None = None,
                              timeout: float | None = None) -> ResourceClass:
        """Rename a custom resource class.

        :raises ResourceClassNotFound: if there is no such class
        :raises ResourceClassExists: if there is a custom class of the new name
        :raises ResourceClassStandard: if one of the names is a standard class's
        """
        return self._change(context, "resource_class_rename", request_id, timeout, name=name,
                            given=ResourceClass(name=new_name))

    def resource_class_delete(self, context: RequestContext | None, name: str,
                              request_id: str | None = None,
                              timeout: float | None = None) -> None:
        """Delete a custom resource class.

        :raises ResourceClassNotFound: if there is no such class
        :raises ResourceClassInUse: if there are inventories of it
        :raises ResourceClassStandard: if it is a standard class
        """
        self._change(context, "resource_class_delete", request_id, timeout, name=name)
