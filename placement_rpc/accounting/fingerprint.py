# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of requests, which distinguish a retry from another request of the same id."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from oslo_versionedobjects import base

from placement_rpc.objects.codec import plain


class CanonicalForm(dict):
    """The canonical form of a versioned object, computed once for several fingerprints."""

    def __init__(self, value: base.VersionedObject):
        super().__init__(_canonical(value))

    def without(self, *names: str) -> "CanonicalForm":
        """Return the form without some fields."""
        if not any(name in self for name in names):
            return self
        form = CanonicalForm.__new__(CanonicalForm)
        form.update((name, value) for name, value in self.items() if name not in names)
        return form


_PLAIN = (str, int, CanonicalForm, type(None))


def _canonical(value, whole=False):
    """As :func:`plain`, but without empty fields that an older sender does not know.

    The same request then has the same fingerprint, whichever release serialized it.

    :param whole: bool, whether to keep these fields
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, base.VersionedObject):
        added, values = getattr(value, "added", {}), vars(value)
        form = {}
        for name in value.fields:
            # Read the attribute behind the property, which would raise for a field that is not
            # set.
            found = values.get(f"_obj_{name}", _UNSET)
            if found is not _UNSET and (whole or not (name in added and found in (None, []))):
                form[name] = _canonical(found, whole)
        return form
    if isinstance(value, dict):
        return {str(key): _canonical(item, whole) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item, whole) for item in value]
    return plain(value)


_UNSET = object()


def fingerprint(method: str, arguments: Mapping[str, Any] | list) -> str:
    """Return a digest that is the same for repeated requests only.

    :param method: name of the call
    :param arguments: its arguments by name
    :returns: 64 hexadecimal digits
    """
    return _digest([method, _canonical(arguments)])


def exact(value: Any) -> str:
    """Return a digest that distinguishes a field that is not set from one that is empty, too.

    :param value: versioned objects and plain data
    :returns: 64 hexadecimal digits
    """
    return _digest(_canonical(value, whole=True))


def _digest(form):
    body = json.dumps(form, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()
