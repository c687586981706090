# SPDX-License-Identifier: Apache-2.0
"""What all versioned objects share: namespace, registry, and the serializer of the bus."""

import contextlib

from oslo_versionedobjects import base
from oslo_versionedobjects import exception as ovo_exc

from placement_rpc import exception


class PlacementObjectRegistry(base.VersionedObjectRegistry):
    """Registers the objects of this project."""


class PlacementObject(base.VersionedObject):
    """Base of the objects that travel.

    An object carries data and the rules about it; what it needs of the store it gets from the
    context (``context.database``), which only a server sets.
    """

    OBJ_SERIAL_NAMESPACE = "placement_object"
    OBJ_PROJECT_NAMESPACE = "placement"

    def __init__(self, context=None, **values):
        for name in values:
            if name not in self.fields:
                # A mistyped name must not be a guard that was dropped.
                raise exception.InvalidInput(
                    what=type(self).__name__, reason=f"it has no field {name!r}")
        super().__init__(context, **values)

    def value(self, name, default=None):
        """The field's value, or ``default`` where it is not set."""
        return getattr(self, name) if self.obj_attr_is_set(name) else default

    @classmethod
    def _obj_from_primitive(cls, context, objver, primitive):
        data = cls._obj_primitive_field(primitive, "data")
        for name in data:
            if name not in cls.fields:
                raise exception.InvalidInput(
                    what=cls.obj_name(), reason=f"it has no field {str(name)[:64]!r}")
        # The library keeps the sender's version on the instance and would then send it on
        # without its compatibility code: what came in is of this release from here on.
        return super()._obj_from_primitive(context, cls.VERSION, primitive)


class PlacementObjectList(base.ObjectListBase, PlacementObject):
    """Base of the lists of objects."""


@contextlib.contextmanager
def refusals(name):
    """Make what the library raises about an object that is read the project's errors.

    :param name: str, of the object
    :raises IncompatibleObjectVersion: for an object that is newer than this release
    :raises InvalidInput: for one that is none
    """
    try:
        yield
    except ovo_exc.IncompatibleObjectVersion as error:
        raise exception.IncompatibleObjectVersion(
            name=error.kwargs.get("objname"), version=error.kwargs.get("objver"),
            supported=error.kwargs.get("supported")) from None
    except exception.PlacementException:
        raise
    except (ovo_exc.VersionedObjectsException, ValueError, TypeError, KeyError,
            AttributeError) as error:
        raise exception.InvalidInput(what=name, reason=str(error)) from None


class Serializer(base.VersionedObjectSerializer):
    """Puts objects on the bus and takes them off it.

    :raises IncompatibleObjectVersion: for an object that is newer than this release
    :raises InvalidInput: for one that is none
    """

    OBJ_BASE_CLASS = PlacementObject

    def _process_object(self, context, objprim):
        with refusals(_name(objprim)):
            return super()._process_object(context, objprim)


def _name(primitive):
    return str(primitive.get(f"{PlacementObject.OBJ_SERIAL_NAMESPACE}.name", "object"))[:64]
