# SPDX-License-Identifier: Apache-2.0
"""Requests on versions, access, addresses and media types."""

from tests.conformance.case import Case


def _versions():
    root, full = "GET /", "GET /resource_providers/<full>"
    yield Case("no version", full, version=None)
    for number in range(5):
        yield Case(f"version 1.{number}", full, version=f"1.{number}")
        yield Case(f"the root at 1.{number}", root, version=f"1.{number}", whole=False)
    for header in (
            "placement latest", "placement 1.5", "placement 1.39", "placement 1.40",
            "placement 0.9",
            "placement 2.0", "placement 1", "placement 1.2.3", "placement", "placement -1.0",
            "placement 1.x", "placement pony.horse", "placement 1.02", "placement LATEST",
            "PLACEMENT 1.2", "placement  1.2", "placement 1.2, placement 1.3", "compute 2.5",
            "compute 2.5, placement 1.2", "placement 1.2, compute 2.5", "compute pony",
            "1.2 placement", ",", "placement\t1.2", "placement 1.2,"):
        yield Case(f"version header {header!r}", full, version=header)
    yield Case("version header without a service", full, version=None,
               headers={"openstack-api-version": "1.2"})
    yield Case("an empty version header", full, version=None,
               headers={"openstack-api-version": ""})
    for header in ("placement 0.5", "placement pony.horse"):
        yield Case(f"the root with {header!r}", root, version=header, headers={
            "x-auth-token": None})
        yield Case(f"the root with {header!r} as HTML", root, version=header, headers={
            "x-auth-token": None, "accept": "text/html"})


def _access():
    full = "GET /resource_providers/<full>"
    yield Case("the root without a token", "GET /", headers={"x-auth-token": None}, whole=False)
    yield Case("the root, another method", "PATCH /")
    yield Case("no token", full, headers={"x-auth-token": None})
    yield Case("no token, bad version", full, version="0.5", headers={"x-auth-token": None})
    yield Case("no token, unknown address", "GET /nothing", headers={"x-auth-token": None})
    yield Case("an empty token", full, headers={"x-auth-token": ""})
    yield Case("another user", full, headers={"x-auth-token": "somebody"})
    yield Case("another user, unknown address", "GET /nothing", headers={
        "x-auth-token": "somebody"})
    yield Case("another user, another method", "PATCH /resource_providers", headers={
        "x-auth-token": "somebody"})
    yield Case("another user, missing provider", "GET /resource_providers/<missing>", headers={
        "x-auth-token": "somebody"})
    yield Case("another user creates", "POST /resource_providers", {"name": "<name>"}, headers={
        "x-auth-token": "somebody"})
    yield Case("another user, broken body", "POST /resource_providers", raw=b"{", headers={
        "x-auth-token": "somebody"})
    yield Case("admin by header", full, headers={
        "x-auth-token": "somebody:project", "x-roles": "admin"})
    yield Case("reader by header", full, headers={
        "x-auth-token": "somebody:project", "x-roles": "reader"})
    yield Case("service by header", full, headers={
        "x-auth-token": "somebody:project", "x-roles": "service"})


def _addresses():
    for path in (
            "/nothing", "/resource_providers/", "/resource_providers/<full>/",
            "//resource_providers", "/resource_providers/<full>/nothing",
            "/resource_providers/not-a-uuid", "/resource_providers/<FULL>",
            "/resource_providers/<full>/inventories/", "/resource_providers/<full>/usages/",
            "/resource%5Fproviders/<full>", "/traits", "/usages", "/allocation_candidates",
            "/allocations", "/allocations/", "/allocations/<consumer>/", "/resource_classes/",
            "/resource_providers/<full>/inventories/VCPU/more",
            "/resource_providers/<full>/traits",
            "/resource_providers/<full>%2Finventories", "/Resource_providers",
            "/resource_providers/%20", "/resource_providers/%ff"):
        yield Case(f"GET {path}", f"GET {path}")
    for request, version in (
            ("GET /resource_classes", "1.1"), ("POST /resource_classes", "1.1"),
            ("GET /resource_classes/VCPU", "1.1"), ("PUT /resource_classes/VCPU", "1.1"),
            ("GET /resource_providers/<full>/aggregates", "1.0"),
            ("PUT /resource_providers/<full>/aggregates", "1.0"),
            ("PATCH /resource_classes", "1.1"),
            ("DELETE /resource_providers/<full>/aggregates", "1.0")):
        yield Case(f"{request} at {version}", request, version=version)
    for request in (
            "PATCH /resource_providers", "DELETE /resource_providers", "PUT /resource_providers",
            "HEAD /resource_providers", "OPTIONS /resource_providers", "PONY /resource_providers",
            "HEAD /resource_providers/<full>",
            "POST /resource_providers/<full>", "PUT /resource_providers/<full>/usages",
            "DELETE /resource_providers/<full>/inventories", "POST /allocations",
            "POST /allocations/<consumer>", "POST /resource_classes/VCPU",
            "DELETE /resource_classes", "DELETE /resource_providers/<full>/aggregates",
            "PUT /resource_providers/<full>/allocations", "PATCH /nothing",
            "POST /resource_providers/not-a-uuid"):
        yield Case(request, request)


def _media():
    full = "GET /resource_providers/<full>"
    for accept in ("text/plain", "text/html", "*/*", "application/*", "text/*", "nonsense", "",
                   "application/json", "application/json;q=0", "text/plain, */*;q=0.1",
                   "application/json; charset=utf-8", "text/html, application/json"):
        yield Case(f"accept {accept!r}", full, headers={"accept": accept})
    yield Case("accept text/plain, missing", "GET /resource_providers/<missing>", headers={
        "accept": "text/plain"})
    yield Case("accept text/html, unknown address", "GET /nothing", headers={
        "accept": "text/html"})
    yield Case("accept text/plain, creates", "POST /resource_providers", {"name": "<name>"},
               headers={"accept": "text/plain"}, whole=False)
    yield Case("accept text/plain, deletes", "DELETE /resource_providers/<empty>", headers={
        "accept": "text/plain"})
    create = "POST /resource_providers"
    for kind in (None, "", "text/plain", "application/json; charset=utf-8", "APPLICATION/JSON",
                 "application/json;", "application/vnd.json", "json"):
        yield Case(f"content type {kind!r}", create, {"name": "<name>"},
                   headers={"content-type": kind}, whole=False)
    yield Case("content type of a GET", full, headers={"content-type": "text/plain"})
    yield Case("content type of a DELETE", "DELETE /resource_providers/<empty>", headers={
        "content-type": "text/plain"})
    yield Case("content type without a body", create, headers={
        "content-type": "application/json"})
    yield Case("neither body nor content type", create)
    yield Case("no content type, unknown address", "PUT /nothing", {}, headers={
        "content-type": None})
    yield Case("no content type, missing provider", "PUT /resource_providers/<missing>", {},
               headers={"content-type": None})
    for name, raw in (
            ("broken", b"{"), ("empty", b""), ("blank", b"  "), ("not UTF-8", b'{"name": "\xff"}'),
            ("a number", b"1"), ("null", b"null"), ("a list", b"[]"), ("NaN", b'{"name": NaN}'),
            ("two objects", b"{}{}"), ("with a mark", b'\xef\xbb\xbf{"name": "x"}'),
            ("single quotes", b"{'name': 'x'}"), ("a lone surrogate", b'{"name": "\\ud800"}'),
            ("a zero", b'{"name": "a\\u0000b"}'),
            ("deep", b"[" * 20_000 + b"]" * 20_000)):
        yield Case(f"body that is {name}", create, raw=raw, whole=False)


GROUPS = (_versions, _access, _addresses, _media)
