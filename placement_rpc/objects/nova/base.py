# SPDX-License-Identifier: Apache-2.0
"""What nova's objects share: their namespace, and answering in older versions.

An object is of the newest version here, whatever version it came in; ``added`` says since which
version it has each field, and so what an older receiver must not be sent.
"""

from oslo_utils import versionutils
from oslo_versionedobjects import base

from placement_rpc import exception
from placement_rpc.objects.base import refusals


class NovaObject(base.VersionedObject):
    """Base of nova's objects.

    :cvar added: dict of field to the version that brought it
    """

    OBJ_SERIAL_NAMESPACE = "nova_object"
    OBJ_PROJECT_NAMESPACE = "nova"

    added = {}

    def value(self, name, default=None):
        """The field's value, or ``default`` where it is not set."""
        return getattr(self, name) if self.obj_attr_is_set(name) else default

    def obj_make_compatible(self, primitive, target_version):
        target = versionutils.convert_version_to_tuple(target_version)
        for name, version in self.added.items():
            if target < versionutils.convert_version_to_tuple(version):
                primitive.pop(name, None)

    @classmethod
    def _obj_from_primitive(cls, context, objver, primitive):
        data = cls._obj_primitive_field(primitive, "data")
        if not isinstance(data, dict):
            raise exception.InvalidInput(what=cls.obj_name(), reason="its data is no mapping")
        # What is received is of this release from here on: see placement_rpc.objects.base.
        return super()._obj_from_primitive(context, cls.VERSION, primitive)

    @classmethod
    def read(cls, primitive, context=None):
        """An object as nova sent it.

        :param primitive: dict in the ``nova_object`` namespace, of any version up to this one's
        :raises IncompatibleObjectVersion: when it is newer
        :raises InvalidInput: when it is none
        """
        with refusals(cls.obj_name()):
            found = cls.obj_from_primitive(primitive, context)
        if not isinstance(found, cls):
            raise exception.InvalidInput(
                what=cls.obj_name(), reason=f"it is a {type(found).__name__}")
        return found
