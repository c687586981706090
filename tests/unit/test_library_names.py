# SPDX-License-Identifier: Apache-2.0
"""The private names of libraries that this package uses are there in the installed versions.

When one of these tests fails, the list that it prints names what a new version of the library no
longer has. ``setup.cfg`` has the upper bounds of these libraries.
"""

import ast
import dis
import importlib
import inspect
import pathlib

import placement_rpc
from tests import base, sources

_PACKAGE = pathlib.Path(placement_rpc.__file__).parent

# Module and class to the attributes that are used of it or of its instances.
_KOMBU_AND_AMQP = {
    "kombu.connection:Connection": [
        "_connection", "ensure_connection", "get_transport_cls", "release"],
    "amqp.connection:Connection": [
        "_on_tune", "_transport", "blocking_read", "bytes_recv", "channel", "channels", "collect",
        "connect", "frame_handler_cls", "frame_max", "heartbeat", "on_inbound_frame",
        "send_heartbeat", "transport"],
    "amqp.transport:TCPTransport": ["_quick_recv", "connected", "having_timeout", "sock", "write"],
    "amqp.transport:SSLTransport": ["_quick_recv", "connected", "having_timeout", "sock", "write"],
    "amqp.serialization:": ["PROPERTY_CLASSES", "dumps", "loads"],
    "kombu.transport.pyamqp:Transport": ["Connection"],
    "amqp.transport:": ["Transport"],
    "amqp.channel:Channel": [
        "_on_basic_deliver", "auto_decode", "basic_ack", "basic_cancel", "basic_consume",
        "basic_get", "basic_qos", "basic_reject", "channel_id", "confirm_select", "connection",
        "events", "is_closing"],
    "amqp.spec:Basic": ["Deliver", "GetOk", "Publish", "Return"],
    "kombu.compression:": ["compress", "decompress", "get_encoder"],
}
_OSLO_MESSAGING = {
    "oslo_messaging._drivers.common:": [
        "ConfigOptsProxy", "deserialize_remote_exception", "serialize_remote_exception"],
    "oslo_messaging._drivers.amqp:": ["amqp_opts"],
    "oslo_messaging._drivers.impl_rabbit:": ["rabbit_opts"],
    "oslo_messaging._metrics.client:": ["oslo_messaging_metrics"],
    "oslo_messaging._tracing.client:": [
        "_get_tracer", "oslo_messaging_tracing", "trace_receive", "trace_send"],
}
_DATABASE = {
    "sqlalchemy.pool:Pool": ["_creator", "_pre_ping", "dispatch"],
    "sqlalchemy.pool:QueuePool": ["_max_overflow"],
    "sqlalchemy.engine:Row": ["_mapping"],
}
_PSYCOPG = {
    "psycopg:Connection": ["info", "pgconn", "wait"],
    # Sent to a generator of Connection.wait from time to time, while nothing arrives.
    "psycopg.waiting:": ["READY_NONE"],
}
_PYMYSQL = {
    "pymysql.connections:Connection": ["_read_timeout", "_sock"],
}
_VERSIONED_OBJECTS = {
    "oslo_versionedobjects.base:VersionedObject": [
        "_changed_fields", "_context", "_obj_from_primitive", "_obj_primitive_field",
        "_obj_primitive_key"],
    "oslo_versionedobjects.base:VersionedObjectRegistry": ["_obj_classes"],
    "oslo_versionedobjects.fields:Field": ["_type"],
    "oslo_versionedobjects.fields:List": ["_element_type"],
    "oslo_versionedobjects.fields:CoercedList": ["enable_coercing"],
}
_OTHERS = {
    "oslo_log._options:": ["DEFAULT_LOG_LEVELS", "generic_log_opts", "log_opts"],
}


def _missing(names):
    """Return the names that a library lacks: a list of ``module:class.attribute``."""
    return [f"{place}.{name}" for place, attributes in names.items() for name in attributes
            if not _has(place, name)]


def _has(place, name):
    module, _, cls = place.partition(":")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:
        return False
    if not cls:
        return hasattr(owner, name)
    owner = getattr(owner, cls, None)
    return inspect.isclass(owner) and (
        inspect.getattr_static(owner, name, None) is not None or name in _assigned(owner))


def _assigned(cls):
    """Return the attributes that the methods of a class, and of its bases, set."""
    names = set()
    for each in cls.__mro__:
        names.update(getattr(each, "__annotations__", ()))
        for method in vars(each).values():
            method = getattr(method, "__func__", getattr(method, "fget", method))
            if inspect.isfunction(method):
                names.update(step.argval for step in dis.get_instructions(method)
                             if step.opname == "STORE_ATTR")
    return names


class LibraryNamesTest(base.TestCase):

    def test_kombu_and_amqp(self):
        self.assertEqual([], _missing(_KOMBU_AND_AMQP))

    def test_oslo_messaging(self):
        self.assertEqual([], _missing(_OSLO_MESSAGING))

    def test_sqlalchemy(self):
        self.assertEqual([], _missing(_DATABASE))

    def test_psycopg(self):
        self.assertEqual([], _missing(_PSYCOPG))

    def test_pymysql(self):
        self.assertEqual([], _missing(_PYMYSQL))

    def test_oslo_versionedobjects(self):
        self.assertEqual([], _missing(_VERSIONED_OBJECTS))

    def test_others(self):
        self.assertEqual([], _missing(_OTHERS))

    def test_a_name_that_is_gone_is_named(self):
        self.assertEqual(
            ["amqp.connection:Connection._gone", "amqp.gone:X.x"],
            _missing({"amqp.connection:Connection": ["_transport", "_gone"],
                      "amqp.gone:X": ["x"]}))


class WhereTest(base.TestCase):

    def test_private_names_of_kombu_and_amqp_stand_in_one_module(self):
        """``frames`` has them; an attribute of ``self`` and ``cls`` is the package's own."""
        names = {"_transport", "_quick_recv", "on_inbound_frame", "send_heartbeat"}
        found = {path.relative_to(_PACKAGE).as_posix() for path in _PACKAGE.rglob("*.py")
                 for node in ast.walk(sources.parsed(path))
                 if isinstance(node, ast.Attribute) and node.attr in names
                 and getattr(node.value, "id", None) not in ("self", "cls")}
        self.assertEqual({"amqp/frames.py"}, found)
