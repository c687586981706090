# SPDX-License-Identifier: Apache-2.0
"""The server's side of a call: the one gate that every call passes, and argument checks."""

from collections.abc import Callable
from typing import Any, TypeVar

from placement_rpc import exception
from placement_rpc.context import initiated_by
from placement_rpc.objects import fields
from placement_rpc.versions import contract

# The most entries in one answer; PlacementAPI asks for the next page by itself.
MAX_PAGE = 1000
UUID, NAME = fields.Uuid(), fields.Name()

_Method = TypeVar("_Method", bound=Callable)


def exposed(method: _Method) -> _Method:
    """Make a method of an :class:`Endpoint` callable from outside."""
    method.exposed = True  # type: ignore[attr-defined]
    return method


class Endpoint:
    """Base of classes that answer calls with exposed methods, behind one gate.

    A call comes alone or in a batch, from a request queue, from the command queue or from this
    process: all of them pass :meth:`enter`, so that a guard that is added there holds on every
    path.

    A method of a call that is ``batched`` changes nothing itself. It returns a pending request,
    and :meth:`settle` settles many of them in one transaction. One of a call that is
    ``remembered`` returns a pending one, too: :meth:`recall` looks for the answers to many of them
    in memory, and the others have to ``run()``.
    """

    #: dict of method name to :class:`placement_rpc.versions.contract.Call`
    calls = contract.CALLS
    #: The store, which is set on the context of each call.
    database: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in dir(cls):
            if getattr(getattr(cls, name), "exposed", False) and name not in cls.calls:
                raise TypeError(f"{cls.__name__}.{name} is exposed, and no table declares it")

    @classmethod
    def call_of(cls, method: object) -> contract.Call | None:
        """Return the table's entry of an exposed method; None if there is no such method."""
        if not isinstance(method, str) or not getattr(
                getattr(cls, method, None), "exposed", False):
            return None
        return cls.calls[method]

    def enter(self, context, method: str, arguments: dict) -> Any:
        """Pass a call through the gate, and run its method.

        :param context: :class:`placement_rpc.context.RequestContext`
        :param method: name of an exposed method
        :param arguments: dict of argument name to value
        :returns: the result; of a batched call, a pending request for :meth:`settle`, of a
            remembered one, one for :meth:`recall`
        :raises RequestExpired: if the caller no longer waits
        :raises Forbidden: if the caller's policy rule does not admit the call
        :raises UpgradeInProgress: if a live service is too old for what the call changes
        :raises PlacementException: any other error with which the method refuses the call
        """
        if arguments.get("request_id") is None:
            # A change looks for its stored outcome before its deadline: see
            # placement_rpc.accounting.idempotency.
            context.check_deadline()
        if context.rule is not None:
            self.check_policy(context, method, arguments)
        if self.calls[method].everywhere:
            self.check_everywhere(method, self.calls[method].since)
        context.database = self.database
        with initiated_by(context):
            return getattr(self, method)(context, **arguments)

    def check_policy(self, context, method: str, arguments: dict) -> None:
        """Check a call that comes through the HTTP facade a second time.

        :param arguments: dict of argument name to value
        :raises Forbidden: if the rule that the facade names does not admit it
        """
        raise exception.Forbidden(rule=str(context.rule)[:64])

    def check_everywhere(self, what: str, contract_version: str) -> None:
        """Check that every live service knows a version of the contract.

        :param what: what needs it, for the error
        :raises UpgradeInProgress: if one does not
        """
        raise NotImplementedError

    def settle(self, queue: str | None, pending: list) -> list:
        """Settle batched calls of one queue in as few transactions as possible.

        :param pending: list of what :meth:`enter` returned
        :returns: list in the same order of objects with ``result`` and ``error``
        """
        raise NotImplementedError

    def recall(self, pending: list) -> list:
        """Look for the answers to calls that are ``remembered``, in the memory of this process.

        :param pending: list of what :meth:`enter` returned
        :returns: list in the same order of results, None for a call that has to run
        :raises StoreUnavailable: if the database, which says what still holds, cannot be reached
        """
        raise NotImplementedError

    def run(self, context, method: str, arguments: dict) -> Any:
        """Pass a call through the gate and return its result; no other call is settled with it.

        :raises PlacementException: the error with which the call is refused
        """
        entered = self.enter(context, method, arguments)
        call = self.calls[method]
        if call.batched:
            outcome, = self.settle(call.queue, [entered])
            return self.answer(outcome)
        if not call.remembered:
            return entered
        known, = self.recall([entered])
        if known is not None:
            return known
        with initiated_by(context):
            return entered.run()

    @staticmethod
    def answer(outcome: Any) -> Any:
        """Return the result of a settled call, or raise the error it was refused with."""
        if outcome.error is not None:
            raise outcome.error
        return outcome.result


def as_uuid(name: str, value: object) -> str:
    """Return a uuid in its canonical spelling.

    :raises InvalidInput: if it is not a uuid
    """
    return UUID.coerce(None, name, value)


def optional(field: Any, name: str, value: object) -> Any:
    """Return the checked value of an argument that may be left out; None if it is.

    :param field: a field type of :mod:`placement_rpc.objects.fields`, like :data:`UUID`
    :raises InvalidInput: if the field cannot have the value
    """
    return None if value is None else field.coerce(None, name, value)


def as_name(value: object) -> str:
    """Return a provider's name.

    :raises InvalidInput: if a provider cannot have it
    """
    return NAME.coerce(None, "name", value)


def as_generation(value: object) -> int | None:
    """Return a generation; None if none is given.

    :raises InvalidInput: if it is not a whole number
    """
    return optional(fields.WholeNumber(maximum=2 ** 63 - 1), "generation", value)


def as_limit(value: object) -> int:
    """Return the maximum number of entries of an answer, never above :data:`MAX_PAGE`.

    :raises InvalidInput: if it is not a positive whole number
    """
    if value is None:
        return MAX_PAGE
    return min(MAX_PAGE, fields.WholeNumber(minimum=1).coerce(None, "limit", value))


def as_bool(name: str, value: object) -> bool | None:
    """Return a bool; None if none is given.

    :raises InvalidInput: if it is not a bool
    """
    if value is None or isinstance(value, bool):
        return value
    raise exception.InvalidInput(what=name, reason="it is neither true nor false")


def require_fields(value: Any, *names: str) -> Any:
    """Return the object if these fields are set.

    :raises InvalidInput: for the first that is not
    """
    for name in names:
        if not value.obj_attr_is_set(name):
            raise exception.InvalidInput(
                what=type(value).__name__, reason=f"{name} is missing")
    return value
