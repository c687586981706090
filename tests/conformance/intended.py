# SPDX-License-Identifier: Apache-2.0
"""The answers of the facade that differ from openstack-placement on purpose, with the reasons.

In addition, everywhere: an error object has its ``code`` at every version, and the last version
is 1.4.
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
    ("a version that the specifications do not have", (*_ALL, "openstack-api-version"), [
        (200, 200, "version header 'placement latest'"),
        (406, 200, "version header 'placement 1.39'")]),
    ("an error is an error object, and names the authentication", (*_ALL, "www-authenticate"), [
        (401, 401, "no token", "no token, bad version", "no token, unknown address")]),
    ("the server in front refuses it before the facade sees it", (
        *_ALL, "openstack-api-version", "has a request id"), [
        (400, 404, "GET //resource_providers")]),
    ("a uuid is the same in either letter case, with or without dashes", _ALL, [
        (200, 404, "GET /resource_providers/<FULL>"), (200, 200, "list uuid=<FULL>"),
        (200, 200, *(f"list member_of=<AGGREGATE> at {version}" for version in (
            "1.23", "1.24", "1.31", "1.32"))),
        (200, 200, "set capitals as aggregates", "set no dashes as aggregates"),
        (204, 400, "allocate of capitals")]),
    ("an encoded slash does not part an address", _ALL, [
        (404, 200, "GET /resource_providers/<full>%2Finventories")]),
    ("every change of a provider raises its generation, because its ETag has to change", _ALL, [
        (200, 200, "rename", "rename at 1.0", "set aggregates at 1.1", "set aggregates at 1.4",
         "list member_of=<aggregate>", "list member_of=in:<aggregate>",
         "list member_of=in:<aggregate>,<missing>", "list member_of=<aggregate>&uuid=<grouped>",
         "list with all", "member_of at 1.3"),
        (204, 204, "free at 1.0", "free at 1.4")]),
    ("no provider has an empty name", _ALL, [(200, 200, "list name=", "list name")]),
    ("setting the same values is not a change", _ALL, [
        (200, 200, "set no inventories", "change nothing in an inventory"),
        (204, 204, "allocate anew what it has")]),
    ("a class that is named twice is a mistake, and two classes are both meant", _ALL, [
        (400, 204, "allocate of one twice", "allocate of 100 at once"),
        (204, 204, "allocate of one twice, two classes")]),
    ("a malformed consumer is a bad request for every method", _ALL, [
        (400, 200, "GET allocations of a bad uuid"),
        (400, 404, "DELETE allocations of a bad uuid")]),
    ("an address that no version of the specifications has is not found", _ALL, [
        (404, 405, "GET /allocations"),
        (404, 405, "PATCH /resource_classes at 1.1",
         "DELETE /resource_providers/<full>/aggregates at 1.0"),
        (404, 415, "PUT /resource_providers/<full>/aggregates at 1.0"),
        (404, 400, "no content type, unknown address")]),
    ("405 names the allowed methods, and is JSON for every method", _ALL, [
        (405, 405, "HEAD /resource_providers", "HEAD /resource_providers/<full>",
         "DELETE /resource_providers/<full>/inventories")]),
    ("media types are compared as HTTP says", _ALL, [
        (406, 406, "accept 'text/plain'", "accept 'application/json;q=0'",
         "accept text/plain, missing"),
        (200, 406, "accept 'application/json; charset=utf-8'"),
        (406, 201, "accept text/plain, creates"), (406, 204, "accept text/plain, deletes"),
        (201, 415, "content type 'APPLICATION/JSON'"),
        (400, 415, "neither body nor content type", "rename without a body")]),
    ("the service's own rules for names, the same over RPC", _ALL, [
        (400, 500, "body that is a lone surrogate", "body that is deep",
         "create class 'CUSTOM_A\\n' of 9"),
        (400, 201, "body that is a zero", "create with a blank name",
         "create with a name with blanks"), (400, 400, "create with an empty name"),
        (400, 200, "rename to nothing"),
        (400, 409, "rename a class to 'CUSTOM_A\\n' of 9")]),
    ("an unknown or a repeated query parameter is refused", _ALL, [
        (400, 200, "list uuid=<full>&uuid=<full>", "list uuid=<full>&uuid=<empty>",
         "list name=a&name=b", "list uuid=<full>;name=x", "list with resources twice",
         "list with 'VCPU:1,VCPU:2'", "list with 'VCPU:1 '", "list with 'VCPU:%201'",
         "list with 'VCPU:2147483648'", "list with 'VCPU:\u0663'", "list with 'VCPU:%2B1'",
         "list with 'VCPU:1_0'", "query elsewhere", "query of inventories", "query of usages",
         "query of classes", "query of allocations", "classes, another query"),
        (400, 201, "query when creating"), (400, 500, "list with 'VCPU:99999999999999999999'"),
        (400, 400, "list member_of=<aggregate>&member_of=<aggregate>",
         "list member_of=!<aggregate>")]),
    ("the specification has no body for it", _ALL, [
        (204, 200, "rename a class to '<used>_2' of 8", "rename a class to its own name",
         "rename a used class")]),
    ("an amount that no inventory can have is found by the schema", _ALL, [
        (400, 400, "set inventories with ratio 0", "add an inventory with ratio 0",
         "set inventories with ratio -1", "add an inventory with ratio -1",
         "set inventories of class 'vcpu'", "set inventories of class ''",
         "set inventories of class 'VCPU '"),
        (400, 409, "allocate 2147483648 of 'VCPU'",
         "allocate 1000000000000000000000000000000 of 'VCPU'",
         "set inventories, generation negative", "set inventories, generation huge")]),
    ("the specification refuses a capacity below what is used", _ALL, [
        (409, 200, "set inventories to less than is used",
         "set inventories to more reserved than is left",
         "change an inventory with less than is used")]),
    ("the specification ignores the class in the body", _ALL, [
        (200, 400, "change an inventory with a class",
         "change an inventory with another class")]),
)

DIFFERENCES = dict(_table())
