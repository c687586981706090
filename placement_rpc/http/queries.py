# SPDX-License-Identifier: Apache-2.0
"""Query strings: a parameter can be given several times."""

import re
from urllib import parse

from placement_rpc.http import errors

# A request for candidates has four parameters for each of its groups.
_MAX_PARAMETERS = 1000
_SEPARATORS = re.compile("[&;]")


class Query(dict):
    """The parameters of a request: a dict of name to the last value, as the schemas validate it.

    Which value of a repeated parameter counts depends on the parameter: ``query[name]`` is the
    last, :meth:`first` the first, and :meth:`all` all of them.

    :param pairs: iterable of tuples of name and value, in the order of the request
    """

    def __init__(self, pairs=()):
        self._values = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)
        super().__init__({name: values[-1] for name, values in self._values.items()})

    def first(self, name, default=None):
        """Return the first value of a parameter, or ``default`` if it is not given."""
        return self._values[name][0] if name in self else default

    def all(self, name):
        """Return all values of a parameter in order, as a list; empty if it is not given."""
        return list(self._values[name]) if name in self else []


def read(req):
    """Return the :class:`Query` of a request.

    :raises BadRequest: if a parameter is not UTF-8, or if there are more than 1,000
    """
    parts = [part for part in _SEPARATORS.split(req.query_string) if part]
    if len(parts) > _MAX_PARAMETERS:
        raise errors.BadRequest(
            reason=f"Invalid query string parameters: there are more than {_MAX_PARAMETERS}")
    try:
        return Query(tuple(parse.unquote_plus(text, errors="strict") for text in (name, value))
                     for name, _, value in (part.partition("=") for part in parts))
    except UnicodeDecodeError as error:
        raise errors.BadRequest(
            reason=f"Invalid query string parameters: {str(error)[:80]}") from None
