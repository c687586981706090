# SPDX-License-Identifier: Apache-2.0
"""The base of nova's objects: their namespace, and the remote calls of their methods."""

import collections
import functools
import typing

from oslo_context import context as oslo_context
from oslo_versionedobjects import base as ovo

from placement_rpc import exception
from placement_rpc.objects import base
from placement_rpc.objects.base import BROKEN, refusals

__all__ = ["BROKEN", "NovaObject", "NovaObjectRegistry", "refusals", "remotable"]


class NovaObjectRegistry(base.Registry):
    """The registry of nova's objects."""

    own: typing.ClassVar[dict[str, list]] = collections.defaultdict(list)


class NovaObject(base.Travelling):
    """Base of nova's objects."""

    OBJ_SERIAL_NAMESPACE = "nova_object"
    OBJ_PROJECT_NAMESPACE = "nova"

    registry = NovaObjectRegistry

    @classmethod
    def _obj_from_primitive(cls, context, objver, primitive):
        data = cls._obj_primitive_field(primitive, "data")
        if not isinstance(data, dict):
            raise exception.InvalidInput(what=cls.obj_name(), reason="its data is not a mapping")
        return super()._obj_from_primitive(context, objver, primitive)

    @classmethod
    def read(cls, primitive: dict, context: typing.Any = None) -> typing.Self:
        """Return an object in the form in which nova sent it.

        :param primitive: dict in the ``nova_object`` namespace, of any version up to this one's
        :raises IncompatibleObjectVersion: if the version is newer
        :raises InvalidInput: if it is malformed or of another class
        """
        with refusals(cls.obj_name()):
            found = cls.obj_from_primitive(primitive, context)
        if not isinstance(found, cls):
            raise exception.InvalidInput(
                what=cls.obj_name(), reason=f"it is a {type(found).__name__}")
        return found

    def lost_at(self, version: str) -> list[str]:
        """Return the changed fields only: for others, an older receiver needs no value."""
        changed = self.obj_what_changed()
        return [name for name in super().lost_at(version) if name in changed]

    @classmethod
    def versions(cls, found: dict[str, str] | None = None) -> dict[str, str]:
        """Return the versions of this object and of those nested in it, a dict by name."""
        found = {} if found is None else found
        if cls.obj_name() not in found:
            found[cls.obj_name()] = cls.VERSION
            for field in cls.fields.values():
                name = getattr(field, "objname", None)
                if name:
                    nested: typing.Any = cls.registry.obj_classes()[name][0]
                    nested.versions(found)
        return found


def remotable(method: typing.Callable) -> typing.Callable:
    """Decorate a method that runs on the server if there is an indirection API.

    Unlike the library's decorator, this one looks the versions of objects up in nova's registry
    here and not in the library's global one.
    """
    instance_method = ovo.remotable(method)

    @functools.wraps(instance_method)
    def call(first, *args, **kwargs):
        if first.indirection_api is None:
            return instance_method(first, *args, **kwargs)
        if not isinstance(first, type):
            if first._context is None:
                # Calls may be made without a context; the library's method refuses that.
                first._context = oslo_context.RequestContext(overwrite=False)
            return instance_method(first, *args, **kwargs)
        context, *rest = args
        return first.indirection_api.object_class_action_versions(
            context, first.obj_name(), method.__name__, first.versions(), rest, kwargs)

    return call
