# SPDX-License-Identifier: Apache-2.0
"""The answers of the facade that differ from openstack-placement on purpose, with the reasons.

In addition, everywhere: an error object has a ``code`` at every version, and an ``exact_code``;
and the generations of providers follow a rule of their own (every change raises them by one).
"""

import dataclasses

# If only one of the two refuses a request, all of the answer differs except these.
_ALL = ("status", "body", "content-type", "location", "cache-control", "has a time", "allow")


@dataclasses.dataclass
class Difference:
    """:ivar statuses: pair of int, here and there; :ivar excused: what else may differ"""

    statuses: tuple
    reason: str
    excused: tuple = _ALL


def _table():
    for reason, excused, rows in _ROWS:
        for here, there, *names in rows:
            for name in names:
                yield name, Difference((here, there), reason, excused)


_ROWS = (
    ("a uuid is the same in either letter case, with or without dashes", _ALL, [
        (200, 404, "GET /resource_providers/<FULL>"), (200, 200, "list uuid=<FULL>"),
        (200, 200, "set capitals as aggregates", "set no dashes as aggregates",
         "candidates in <ZONE>", "candidates in the tree of <ONE>"),
        (204, 400, "allocate of capitals")]),
    ("what is an error of the server there is one of the client here", _ALL, [
        (400, 500, "body that is a lone surrogate", "body that is deep",
         "create class 'CUSTOM_A\\n' of 9", "list with 'VCPU:99999999999999999999'",
         "candidates with 20 digits", "candidates with a limit of x and of 1"),
        # SQLite stores a zero, PostgreSQL does not.
        (400, 201, "body that is a zero"),
        # The other server has the class with the line break.
        (400, 409, "rename a class to 'CUSTOM_A\\n' of 9"), (400, 400, "body that is NaN")]),
    ("the specification refuses a capacity below what is used", _ALL, [
        (409, 200, "set inventories to less than is used",
         "set inventories to more reserved than is left",
         "change an inventory with less than is used")]),
    ("the specification ignores the class in the body", _ALL, [
        (200, 400, "change an inventory with a class",
         "change an inventory with another class")]),
    ("the server in front refuses it before the facade sees it", (
        *_ALL, "openstack-api-version", "has a request id"), [
        (400, 404, "GET //resource_providers")]),
    ("an encoded slash does not part an address", _ALL, [
        (404, 200, "GET /resource_providers/<full>%2Finventories")]),
    ("an address that the version does not have is not found, whatever is sent", _ALL, [
        (404, 415, "PUT /resource_providers/<full>/aggregates at 1.0"),
        (404, 400, "no content type, unknown address")]),
    ("an error is an error object, and names the authentication", (*_ALL, "www-authenticate"), [
        (401, 401, "no token", "no token, bad version", "no token, unknown address",
         "candidates without a token")]),
    ("405 names the allowed methods, and is JSON for every method", _ALL, [
        (405, 405, "HEAD /resource_providers", "HEAD /resource_providers/<full>",
         "DELETE /resource_providers/<full>/inventories", "delete all inventories at 1.4")]),
    ("media types are compared as HTTP says, and an error is JSON", _ALL, [
        (406, 406, "accept 'text/plain'", "candidates as text", "accept 'application/json;q=0'",
         "accept text/plain, missing"),
        (200, 406, "accept 'application/json; charset=utf-8'"),
        (201, 415, "content type 'APPLICATION/JSON'")]),
    ("of a repeated parameter, the value that counts is checked", _ALL, [
        (400, 200, "candidates with the policies pony and none")]),
    ("no provider has an empty name", _ALL, [(400, 200, "rename to nothing")]),
)

DIFFERENCES = dict(_table())
