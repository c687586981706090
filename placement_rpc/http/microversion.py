# SPDX-License-Identifier: Apache-2.0
"""Microversions: which meaning of the API a request asks for (HTTP.md, Microversions)."""

import functools
import re

import microversion_parse

from placement_rpc import exception

SERVICE_TYPE = "placement"
HEADER = "openstack-api-version"

#: tuple of int each, the oldest and the newest that is served
MIN, MAX = (1, 0), (1, 4)


_VERSION = re.compile(r"-?[0-9]{1,9}\.[0-9]{1,9}", re.ASCII)


class UnacceptableVersion(exception.InvalidInput):
    """A well-formed version that is not served; the answer says which are."""

    code = "placement.microversion.unacceptable"
    http_status = 406
    message = "Unacceptable version header: {version}"


class InvalidVersion(exception.InvalidInput):
    code = "placement.microversion.invalid"
    message = "invalid version string: {version}"


def text(version):
    """:param version: tuple of int; :returns: str, as ``1.4``"""
    return ".".join(map(str, version))


@functools.lru_cache(maxsize=256)
def asked(header):
    """The version that a request asks for.

    :param header: str, the value of ``OpenStack-API-Version``; None for none
    :returns: tuple of int; where none is asked for the oldest, not the newest
    :raises InvalidVersion: :raises UnacceptableVersion:
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
