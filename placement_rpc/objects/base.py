# SPDX-License-Identifier: Apache-2.0
"""The base of all versioned objects: registries, versions, and the serializer of the bus."""

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
    """Objects by name, separate from the global registry of oslo.versionedobjects.

    nova-compute has its own ComputeNode and Service in the global registry, and a class that is
    registered there under the same name would replace them.
    """

    def __new__(cls):
        self = object.__new__(cls)
        self._obj_classes = cls.__dict__["own"]
        return self


class PlacementObjectRegistry(Registry):
    """The registry of this project's objects."""

    own: typing.ClassVar[dict[str, list]] = collections.defaultdict(list)


_T = typing.TypeVar("_T")
# Dict of wire namespace to its base class.
_namespaces: dict[str, type] = {}


class Travelling(base.VersionedObject):
    """Base of the objects that travel over the bus.

    In the program an object always has the newest version, whatever version it was received in.
    ``added`` says which fields must not be sent to an older receiver.

    :cvar added: dict of field to the version that introduced it
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

    def value(self, name: str, default: typing.Any = None) -> typing.Any:
        """Return the value of a field, or ``default`` if it is not set.

        :raises AttributeError: if there is no such field
        """
        if name not in self.fields:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        # As the library's properties read it.
        return vars(self).get(f"_obj_{name}", default)

    @classmethod
    def obj_class_from_name(cls, objname, objver):
        """Return the class of an object.

        :raises UnsupportedObjectError: if there is none with the name
        :raises IncompatibleObjectVersion: of oslo.versionedobjects, if the version is newer
        """
        known = cls.registry.obj_classes().get(objname)
        if not known:
            raise ovo_exc.UnsupportedObjectError(objtype=objname)
        # Stable releases add a third number, which does not affect the fields.
        if not _is_compatible(".".join(objver.split(".")[:2]), known[0].VERSION):
            raise ovo_exc.IncompatibleObjectVersion(
                objname=objname, objver=objver, supported=known[0].VERSION)
        return known[0]

    @classmethod
    def to_json_schema(cls):
        """Return the JSON schema, as the library does, but with this registry's objects."""
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
        # The library keeps the sender's version on the instance, and would then send the object
        # on without compatibility code. Here a received object gets this release's version.
        return codec.from_primitive(cls, context, primitive)

    def obj_to_primitive(self, target_version=None, version_manifest=None):
        """Return the wire format for a receiver of any release.

        :param target_version: the version of this object; None for that of the manifest
        :param version_manifest: dict of object name to the version that the receiver knows; other
            objects are sent at this release's version
        :raises InvalidTargetVersion: of oslo.versionedobjects, if the target version is newer
            than this release's
        """
        primitive = codec.to_primitive(self)
        if target_version is None and version_manifest is None:
            return primitive
        return self._backported(primitive, target_version, version_manifest or {})

    @classmethod
    def _backported(cls, primitive, target, manifest):
        target = target or manifest.get(cls.obj_name()) or cls.VERSION
        if _version(target) > _version(cls.VERSION):
            if manifest:
                # A newer receiver reads older versions.
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
            found = _class_of(base_class, value)
            if found is not None:
                return found._backported(value, None, manifest)
        # A plain dict may contain objects, such as the outcome of a request.
        return {key: cls._nested(item, manifest) for key, item in value.items()}

    def forget_changes(self) -> None:
        """Do as :meth:`obj_reset_changes`, nested objects included, at a tenth of the cost."""
        self._changed_fields.clear()
        for value in vars(self).values():
            if isinstance(value, Travelling):
                value.forget_changes()
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, Travelling):
                        item.forget_changes()

    def lost_at(self, version: str) -> list[str]:
        """Return the names of the fields with a value that an older receiver would not get.

        :param version: the version of this object that the receiver knows
        """
        return [name for name, since in self.added.items()
                if _version(version) < _version(since) and self.value(name) not in (None, [])]


def _class_of(base_class, value):
    """Return the class of a dict that is an object in wire format; None for any other dict."""
    key = base_class._obj_primitive_key
    name, changes = value.get(key("name")), value.get(key("changes"), [])
    if not (isinstance(name, str) and isinstance(value.get(key("data")), dict)
            and isinstance(changes, list) and all(isinstance(each, str) for each in changes)):
        return None
    known = base_class.registry.obj_classes().get(name)
    return known[0] if known else None


def backported(primitive: typing.Any, manifest: dict[str, str]) -> typing.Any:
    """Convert the wire format of an object to older versions.

    :param primitive: JSON values of this release, which are changed in place
    :param manifest: as for :meth:`Travelling.obj_to_primitive`
    :returns: JSON values; an object that this release does not know is not changed
    """
    return Travelling._nested(primitive, manifest)


def check_versions(value: typing.Any, versions: dict[str, str]) -> None:
    """Check that a release understands the objects of a message.

    :param value: JSON values, with objects in wire format
    :param versions: dict of object name to the version that the release knows
    :raises IncompatibleObjectVersion: if an object is newer or unknown
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


# Cached, since a list may have hundreds of objects of the same version.
_is_compatible = functools.lru_cache(1024)(versionutils.is_compatible)


def _version(text):
    return versionutils.convert_version_to_tuple(text)


class PlacementObject(Travelling):
    """Base of this project's objects.

    An object carries data and rules about the data. It does not use the database.
    """

    OBJ_SERIAL_NAMESPACE = "placement_object"
    OBJ_PROJECT_NAMESPACE = "placement"

    def __init__(self, context=None, **values):
        for name in values:
            if name not in self.fields:
                # A mistyped name must be an error, or a precondition would be dropped silently.
                raise exception.InvalidInput(
                    what=type(self).__name__, reason=f"it has no field {name!r}")
        super().__init__(context, **values)

    @classmethod
    def _obj_from_primitive(cls, context, objver, primitive):
        data = primitive[codec.DATA_KEY]
        if not isinstance(data, dict):
            raise exception.InvalidInput(what=cls.obj_name(), reason="its data is not a mapping")
        if not data.keys() <= cls.fields.keys():
            name = next(name for name in data if name not in cls.fields)
            raise exception.InvalidInput(
                what=cls.obj_name(), reason=f"it has no field {str(name)[:64]!r}")
        return super()._obj_from_primitive(context, objver, primitive)


class PlacementObjectList(base.ObjectListBase, PlacementObject):
    """Base of the lists of this project's objects."""


#: The exceptions that parsing malformed input can raise.
BROKEN = (ValueError, TypeError, LookupError, AttributeError, NotImplementedError, OverflowError,
          RecursionError)


def instance_of(cls: type[_T], name: str, value: object) -> _T:
    """Return the value if it is an object of the class.

    :raises InvalidInput: otherwise
    """
    if not isinstance(value, cls):
        raise exception.InvalidInput(
            what=name, reason=f"a {cls.__name__} was expected, not a {type(value).__name__}")
    return value


@contextlib.contextmanager
def refusals(name: str) -> typing.Iterator[None]:
    """Translate the exceptions of parsing an object to the project's; a context manager.

    :param name: the name of the object
    :raises IncompatibleObjectVersion: if the object is newer than this release
    :raises InvalidInput: if it is malformed
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
    """Serialize objects of any namespace for the bus, and deserialize them."""

    def serialize_entity(self, context, entity, manifest=None):
        """Return JSON values, with objects in wire format.

        :param entity: a versioned object, or lists, tuples, sets and dicts of objects and of JSON
            values
        :param manifest: dict of object name to the version that the receiver knows; None for a
            receiver of this release
        """
        if isinstance(entity, Travelling):
            return entity.obj_to_primitive(version_manifest=manifest)
        if isinstance(entity, base.VersionedObject):
            # An object of nova's own class and registry.
            primitive = entity.obj_to_primitive()
            return backported(primitive, manifest) if manifest else primitive
        if isinstance(entity, dict):
            return {key: self.serialize_entity(context, value, manifest)
                    for key, value in entity.items()}
        if isinstance(entity, (list, tuple, set)):
            return [self.serialize_entity(context, value, manifest) for value in entity]
        return entity

    def deserialize_entity(self, context, entity):
        """Return the objects of JSON values from the bus.

        :raises IncompatibleObjectVersion: if an object is newer than this release
        :raises InvalidInput: if an object is malformed
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
