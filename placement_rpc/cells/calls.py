# SPDX-License-Identifier: Apache-2.0
"""How a method of PlacementAPI becomes one of CellsAPI: the same signature, and a cell for it."""

import copy
import functools
import inspect
import time
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from oslo_context.context import RequestContext

from placement_rpc.api import PlacementAPI
from placement_rpc.rpc.client import seconds_of

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Call:
    """A call as the caller made it, to be made in a cell.

    :param function: the method of PlacementAPI
    :param arguments: all of its arguments by name
    :param deadline: seconds for a call without a time-out
    """

    def __init__(self, function: Callable[..., Any], arguments: dict[str, Any], deadline: float):
        self.method = function.__name__
        self._function = function
        self.arguments = arguments
        self.ends = time.monotonic() + seconds_of(arguments.pop("timeout"), deadline)

    @property
    def context(self) -> RequestContext | None:
        return self.arguments["context"]

    @property
    def is_cast(self) -> bool:
        """Whether it is stored, to be settled later."""
        return bool(self.arguments.get("cast"))

    def within(self, seconds: float) -> "Call":
        """Return the same call, to be made within some seconds."""
        found = copy.copy(self)
        found.ends = min(self.ends, time.monotonic() + seconds)
        return found

    @property
    def left(self) -> float:
        """The seconds until the call has to end."""
        return max(0.0, self.ends - time.monotonic())

    def __call__(self, api: PlacementAPI, **changed: Any) -> Any:
        """Make the call in the cell of a client.

        :param changed: arguments that differ from the caller's
        """
        return self._function(api, **{"timeout": self.left, **self.arguments, **changed})


def routed(function: Callable[Concatenate[Any, _P], _T], route: Callable[[Any, Call], Any],
           ) -> Callable[Concatenate[Any, _P], _T]:
    """Return a method of CellsAPI with the signature and the description of one of PlacementAPI.

    :param function: the method of PlacementAPI
    :param route: makes a call; called with the :class:`CellsAPI` and the :class:`Call`
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(self, *args, **kwargs):
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        arguments.pop("self")
        return route(self, Call(function, arguments, self.deadline))

    return call
