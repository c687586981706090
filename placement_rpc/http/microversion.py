# SPDX-License-Identifier: Apache-2.0
"""Microversions: the version of the API that a request asks for (HTTP.md, Microversions)."""

import functools
import re

import microversion_parse

from placement_rpc import exception

SERVICE_TYPE = "placement"
HEADER = "openstack-api-version"

#: The oldest and the newest microversion that are served, a tuple of int each
MIN, MAX = (1, 0), (1, 39)

_VERSION = re.compile(r"-?[0-9]{1,9}\.[0-9]{1,9}", re.ASCII)


class UnacceptableVersion(exception.InvalidInput):
    """A well-formed version that is not served; the answer names the versions that are."""

    code = "placement.microversion.unacceptable"
    http_status = 406
    message = "Unacceptable version header: {version}"


class InvalidVersion(exception.InvalidInput):
    code = "placement.microversion.invalid"
    message = "invalid version string: {version}"


def text(version):
    """Return a version, a tuple of int, as text like ``1.4``."""
    return ".".join(map(str, version))


def schema_at(schemas, version):
    """Return the JSON schema of a microversion.

    :param schemas: dict of microversion to schema; None for none
    :returns: the schema of the latest entry that is not newer; None if there is none
    """
    since = max((each for each in schemas or () if each <= version), default=None)
    return None if since is None else schemas[since]


@functools.lru_cache(maxsize=256)
def requested(header):
    """Return the version that a request asks for.

    :param header: str, the value of ``OpenStack-API-Version``; None for none
    :returns: tuple of int; without a header the oldest version, not the newest
    :raises InvalidVersion: if the header is malformed
    :raises UnacceptableVersion: if the version is not served
    """
    if header is None:
        return MIN
    try:
        found = microversion_parse.get_version({HEADER: header}, service_type=SERVICE_TYPE)
    except ValueError:
        raise InvalidVersion(version=header[:80]) from None
    if found is None:
        return MIN
    if found == "latest":
        return MAX
    if not _VERSION.fullmatch(found):
        raise InvalidVersion(version=found[:80])
    version = tuple(microversion_parse.parse_version_string(found))
    if not MIN <= version <= MAX:
        raise UnacceptableVersion(version=found[:80])
    return version
