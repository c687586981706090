# SPDX-License-Identifier: Apache-2.0
"""Calls of the methods of nova's objects for clients without a database, as in nova's conductor.

Only remotable methods can be called. The undecorated function is called, since the decorator would
look for an indirection API again.
"""

import inspect

from placement_rpc import exception
from placement_rpc.objects.base import Travelling
from placement_rpc.objects.nova.base import NovaObject, NovaObjectRegistry


def class_action(context, name, method, args, kwargs):
    """Call a method of a class.

    :param name: str, name of the class
    :param method: str
    :param args: list, the arguments after the context
    :param kwargs: dict, the keyword arguments
    :returns: what the method returned
    :raises UnsupportedCall: if there is no such class or method, or it has other arguments
    """
    known = NovaObjectRegistry.obj_classes().get(name) if isinstance(name, str) else None
    if not known:
        raise exception.UnsupportedCall(reason=f"There is no object {str(name)[:64]!r}")
    function = _function(known[0], method, classmethod)
    return _call(function, method, [known[0], context, *_listed(args)], kwargs)


def action(context, instance, method, args, kwargs):
    """Call a method of an object.

    :param instance: an object of nova's namespace
    :returns: tuple of a dict of the changed fields and ``obj_what_changed``, and of what the
        method returned
    :raises UnsupportedCall: if there is no such method, or it has other arguments
    """
    if not isinstance(instance, NovaObject):
        raise exception.InvalidInput(
            what="objinst", reason=f"it is a {type(instance).__name__}")
    function = _function(type(instance), method, None)
    before = instance.obj_clone()
    instance._context = context
    result = _call(function, method, [instance, *_listed(args)], kwargs)
    updates = {name: _sent(instance, name, field) for name, field in instance.fields.items()
               if instance.obj_attr_is_set(name) and not (
                   before.obj_attr_is_set(name)
                   and getattr(before, name) == getattr(instance, name))}
    updates["obj_what_changed"] = sorted(instance.obj_what_changed())
    return updates, result


def action_in(tx, outbox, context, instance, method, args, kwargs):
    """As :func:`action`, in a transaction that is open already.

    :param tx: connection of the transaction
    :param outbox: :class:`placement_rpc.accounting.outbox.Outbox` of the request
    """
    context.transaction = tx, outbox
    try:
        return action(context, instance, method, args, kwargs)
    finally:
        context.transaction = None


def _function(cls, method, kind):
    """Return the undecorated function of a remotable method.

    :param kind: classmethod, or None for a method of instances
    """
    raw = inspect.getattr_static(cls, method, None) if isinstance(method, str) else None
    marked = raw.__func__ if isinstance(raw, classmethod) else raw
    if not getattr(marked, "remotable", False) or isinstance(raw, classmethod) != (
            kind is classmethod):
        raise exception.UnsupportedCall(
            reason=f"{cls.obj_name()} has no remotable method {str(method)[:64]!r}")
    return marked.original_fn


def _call(function, method, args, kwargs):
    if not isinstance(kwargs, dict):
        raise exception.InvalidInput(what="kwargs", reason="they are not a mapping")
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise exception.UnsupportedCall(reason=f"{method}: {error}") from None
    return function(*args, **kwargs)


def _listed(args):
    if not isinstance(args, (list, tuple)):
        raise exception.InvalidInput(what="args", reason="they are not a list")
    return args


def _sent(instance, name, field):
    value = getattr(instance, name)
    # The serializer converts objects, since it knows which versions the caller reads.
    return value if isinstance(value, Travelling) or _has_objects(value) else (
        field.to_primitive(instance, name, value))


def _has_objects(value):
    return isinstance(value, list) and any(isinstance(each, Travelling) for each in value)
