# SPDX-License-Identifier: Apache-2.0
"""What all versioned objects share: registries, versions, and the serializer of the bus."""

import collections
import contextlib
import functools
import typing

from oslo_utils import versionutils
from oslo_versionedobjects import base, fields
from oslo_versionedobjects import exception as ovo_exc

from placement_rpc import exception
from placement_rpc.objects import codec


class Registry(base.VersionedObjectRegistry):
    """Objects by name, apart from the library's one registry for all.

    A nova-compute has a ComputeNode and a Service of its own in that one: whoever registers a
    class there takes the name from whoever had it.
    """

    def __new__(cls):
        self = object.__new__(cls)
        self._obj_classes = cls.__dict__["own"]
        return self


class PlacementObjectRegistry(Registry):
    """Registers the objects of this project."""

    own: typing.ClassVar[dict[str, list]] = collections.defaultdict(list)


# The base class of each namespace on the wire.
_namespaces: dict[str, type] = {}


class Travelling(base.VersionedObject):
    """Base of the objects that travel.

    An object is of the newest version here, whatever version it came in. ``added`` says since
    which version it has each field, and so what an older receiver must not be sent.

    :cvar added: dict of field to the version that brought it
    :cvar registry: :class:`Registry` of its namespace
    """

    added: typing.ClassVar[dict[str, str]] = {}
    registry: typing.ClassVar[type[Registry]] = PlacementObjectRegistry

    if typing.TYPE_CHECKING:
        # The library makes a property of each field, which a type checker cannot see.
        def __getattr__(self, name: str) -> typing.Any: ...
        def __setattr__(self, name: str, value: typing.Any) -> None: ...

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "OBJ_SERIAL_NAMESPACE" in vars(cls):
            _namespaces[cls.OBJ_SERIAL_NAMESPACE] = cls

    def value(self, name, default=None):
        """The field's value, or ``default`` where it is not set."""
        return getattr(self, name) if self.obj_attr_is_set(name) else default

    @classmethod
    def obj_class_from_name(cls, objname, objver):
        """:raises UnsupportedObjectError: :raises IncompatibleObjectVersion: of the library"""
        known = cls.registry.obj_classes().get(objname)
        if not known:
            raise ovo_exc.UnsupportedObjectError(objtype=objname)
        # A third number is a stable release's, and says nothing of what the object has.
        if not _is_compatible(".".join(objver.split(".")[:2]), known[0].VERSION):
            raise ovo_exc.IncompatibleObjectVersion(
                objname=objname, objver=objver, supported=known[0].VERSION)
        return known[0]

    @classmethod
    def to_json_schema(cls):
        """:returns: dict, as the library's, which looks for objects in its registry for all"""
        return {"$schema": "http://json-schema.org/draft-04/schema#", "title": cls.obj_name(),
                **cls._schema()}

    @classmethod
    def _schema(cls):
        properties = {}
        for name, field in cls.fields.items():
            nested = cls.registry.obj_classes().get(getattr(field, "objname", None))
            if not nested:
                properties[name] = field.get_schema()
            elif isinstance(field, fields.ListOfObjectsField):
                properties[name] = {"type": ["array"], "items": nested[0]._schema()}
            else:
                properties[name] = nested[0]._schema()
        return {"type": ["object"], "properties": properties, "additionalProperties": False}

    @classmethod
    def _obj_from_primitive(cls, context, objver, primitive):
        # The library keeps the sender's version on the instance and would then send it on
        # without its compatibility code: what came in is of this release from here on.
        return super()._obj_from_primitive(context, cls.VERSION, primitive)

    def obj_to_primitive(self, target_version=None, version_manifest=None):
        """As it travels, to a receiver of any age.

        :param target_version: str, of this object; None for what the manifest says
        :param version_manifest: dict of object name to the version that the receiver knows; an
            object that it does not name is sent as it is
        """
        primitive = self._as_it_is()
        if target_version is None and version_manifest is None:
            return primitive
        return self._backported(primitive, target_version, version_manifest or {})

    def _as_it_is(self):
        """:returns: dict, as it travels to a receiver of this release"""
        return super().obj_to_primitive()

    @classmethod
    def _backported(cls, primitive, target, manifest):
        target = target or manifest.get(cls.obj_name()) or cls.VERSION
        if _version(target) > _version(cls.VERSION):
            if manifest:
                # A receiver that is newer reads what is older.
                target = cls.VERSION
            else:
                raise ovo_exc.InvalidTargetVersion(version=target)
        key = cls._obj_primitive_key
        data = primitive[key("data")]
        cls._leave_out(data, target)
        for name, value in data.items():
            data[name] = cls._nested(value, manifest)
        primitive[key("version")] = target
        if key("changes") in primitive:
            primitive[key("changes")] = [
                name for name in primitive[key("changes")] if name in data]
        return primitive

    @classmethod
    def _leave_out(cls, data, target):
        for name, version in cls.added.items():
            if _version(target) < _version(version):
                data.pop(name, None)

    @classmethod
    def _nested(cls, value, manifest):
        if isinstance(value, list):
            return [cls._nested(item, manifest) for item in value]
        if not isinstance(value, dict):
            return value
        for base_class in _namespaces.values():
            known = base_class.registry.obj_classes().get(
                value.get(base_class._obj_primitive_key("name")))
            if known:
                return known[0]._backported(value, None, manifest)
        # There may be objects in it all the same: the outcome of a request is one.
        return {key: cls._nested(item, manifest) for key, item in value.items()}

    def forget_changes(self):
        """What :meth:`obj_reset_changes` does, of objects in it too, at a tenth of the cost."""
        self._changed_fields.clear()
        for value in vars(self).values():
            if isinstance(value, Travelling):
                value.forget_changes()
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, Travelling):
                        item.forget_changes()

    def lost_at(self, version):
        """What a receiver of an older version would not be told of.

        :param version: str, of this object, that the receiver knows
        :returns: list of str, fields that say something
        """
        return [name for name, since in self.added.items()
                if _version(version) < _version(since) and self.value(name) not in (None, [])]


def backported(primitive, manifest):
    """What travels of an object, at older versions.

    :param primitive: dict, of this release, which is taken apart
    :param manifest: as of :meth:`Travelling.obj_to_primitive`
    :returns: dict; an object that this release does not know is returned as it is
    """
    return Travelling._nested(primitive, manifest)


def check_versions(value, versions):
    """Whether a release would understand what travels.

    :param value: JSON values, with objects as they travel
    :param versions: dict of object name to the version that the release knows
    :raises IncompatibleObjectVersion: when an object is newer, or not known at all
    """
    if isinstance(value, list):
        for item in value:
            check_versions(item, versions)
    elif isinstance(value, dict):
        for namespace in _namespaces:
            name, version = (value.get(f"{namespace}.{key}") for key in ("name", "version"))
            if name is not None and not _is_known(name, version, versions):
                raise exception.IncompatibleObjectVersion(
                    name=str(name)[:64], version=str(version)[:16],
                    supported=versions.get(name, "none"))
        for item in value.values():
            check_versions(item, versions)


def _is_known(name, version, versions):
    return isinstance(name, str) and name in versions and isinstance(version, str) and (
        _is_compatible(".".join(version.split(".")[:2]), versions[name]))


# A list has a hundred objects of the same version.
_is_compatible = functools.lru_cache(1024)(versionutils.is_compatible)


def _version(text):
    return versionutils.convert_version_to_tuple(text)


class PlacementObject(Travelling):
    """Base of this project's objects.

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

    @classmethod
    def _obj_from_primitive(cls, context, objver, primitive):
        data = cls._obj_primitive_field(primitive, "data")
        for name in data:
            if name not in cls.fields:
                raise exception.InvalidInput(
                    what=cls.obj_name(), reason=f"it has no field {str(name)[:64]!r}")
        return codec.from_primitive(cls, context, primitive)

    def _as_it_is(self):
        return codec.to_primitive(self)


class PlacementObjectList(base.ObjectListBase, PlacementObject):
    """Base of the lists of objects."""


#: What reading something that is not what it should be ends in.
BROKEN = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, OverflowError,
          RecursionError)


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
    except (ovo_exc.VersionedObjectsException, *BROKEN) as error:
        raise exception.InvalidInput(
            what=name, reason=(str(error) or type(error).__name__)[:200]) from None


class Serializer:
    """Puts objects of any namespace on the bus and takes them off it."""

    def serialize_entity(self, context, entity, manifest=None):
        """What travels in place of objects.

        :param entity: a versioned object, or lists, tuples, sets and dicts of them and of JSON
            values
        :param manifest: dict of object name to the version that the receiver knows; None for
            one of this release
        """
        if isinstance(entity, Travelling):
            return entity.obj_to_primitive(version_manifest=manifest)
        if isinstance(entity, base.VersionedObject):
            # nova's own class, of nova's own registry.
            primitive = entity.obj_to_primitive()
            return backported(primitive, manifest) if manifest else primitive
        if isinstance(entity, dict):
            return {key: self.serialize_entity(context, value, manifest)
                    for key, value in entity.items()}
        if isinstance(entity, (list, tuple, set)):
            return [self.serialize_entity(context, value, manifest) for value in entity]
        return entity

    def deserialize_entity(self, context, entity):
        """Objects, out of what travelled.

        :raises IncompatibleObjectVersion: for an object that is newer than this release
        :raises InvalidInput: for one that is none
        """
        if isinstance(entity, dict):
            for base_class in _namespaces.values():
                if base_class._obj_primitive_key("name") in entity:
                    return self._object(context, base_class, entity)
            return {key: self.deserialize_entity(context, value)
                    for key, value in entity.items()}
        if isinstance(entity, list):
            return [self.deserialize_entity(context, value) for value in entity]
        return entity

    @staticmethod
    def _object(context, base_class, primitive):
        name = primitive[base_class._obj_primitive_key("name")]
        with refusals(str(name)[:64]):
            return base_class.obj_from_primitive(primitive, context=context)
