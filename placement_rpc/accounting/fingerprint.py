# SPDX-License-Identifier: Apache-2.0
"""Objects as plain data: for fingerprints, for JSON output, for logs."""

import hashlib
import json

from oslo_versionedobjects import base

from placement_rpc.objects.codec import plain


class CanonicalForm(dict):
    """What an object tells, for several fingerprints that it is part of.

    :param value: a versioned object
    """

    def __init__(self, value):
        super().__init__(_canonical(value))


_PLAIN = (str, int, CanonicalForm, type(None))


def _canonical(value):
    """As :func:`plain`, without what says nothing and an older sender leaves out: the same request
    has one fingerprint in whatever release's words it comes."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, base.VersionedObject):
        added, values = getattr(value, "added", {}), vars(value)
        told = {}
        for name in value.fields:
            # What the property gives that is asked for nothing that is not there.
            found = values.get(f"_obj_{name}", _UNSET)
            if found is not _UNSET and not (name in added and found in (None, [])):
                told[name] = _canonical(found)
        return told
    if isinstance(value, dict):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return plain(value)


_UNSET = object()


def fingerprint(method, arguments):
    """What tells a repeated request from another one under the same id.

    :param method: str, name of the call
    :param arguments: dict of argument name to value
    :returns: str, 64 hexadecimal digits
    """
    body = json.dumps([method, _canonical(arguments)], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()
