# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI document of the API, generated from the table of routes and the schemas."""

import placement_rpc
from placement_rpc import policies
from placement_rpc.http import microversion
from placement_rpc.http.microversion import schema_at
from placement_rpc.schemas import common, event


def document(routes):
    """Return the OpenAPI document of the newest microversion.

    :param routes: iterable of :class:`placement_rpc.http.routes.Route`
    :returns: dict
    """
    rules = {rule.name: rule.description for rule in policies.list_rules()}
    paths = {}
    for route in routes:
        if route.before and route.before <= microversion.MAX:
            continue
        operations = paths.setdefault(route.path, {})
        name = route.method.lower()
        made = _operation(route, rules)
        operations[name] = _either(operations[name], made) if name in operations else made
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "placement_rpc", "version": microversion.text(microversion.MAX),
            "summary": "Resource accounting for clouds",
            "x-release": placement_rpc.__version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"}},
            "schemas": {"Errors": common.ERRORS},
            "parameters": {"Microversion": {
                "name": "OpenStack-API-Version", "in": "header", "required": False,
                "schema": {"type": "string", "enum": [
                    f"placement 1.{minor}" for minor in range(microversion.MAX[1] + 1)] + [
                        "placement latest"]}}}},
    }


def _operation(route, rules):
    version = microversion.MAX
    operation = {
        "operationId": _name(route), "summary": rules.get(route.rule, _first_line(route)),
        "x-since": microversion.text(route.since),
        "parameters": [
            {"$ref": "#/components/parameters/Microversion"}, *_path_parameters(route),
            *_query_parameters(schema_at(route.query, version))],
        "responses": _responses(route, schema_at(route.answer, version))}
    if route.rule is None:
        operation["security"] = []
    body = schema_at(route.body, version)
    if body is not None:
        operation["requestBody"] = {
            "required": True, "content": {"application/json": {"schema": body}}}
    if route.variant is not None:
        operation["parameters"].append({
            "name": route.variant, "in": "query", "required": False, "allowEmptyValue": True,
            "schema": {"type": "string", "maxLength": 0}})
    operation["parameters"] += _header_parameters(route)
    return operation


def _header_parameters(route):
    """Yield the headers that a request may have in addition to the version and the token."""
    if route.rule is None:
        return
    needed = route.spelling.needs_etag and route.method == "PUT"
    yield _header("If-Match", "Fail with 412 unless one of these ETags is current.", needed)
    if route.method == "GET":
        yield _header("If-None-Match", "Answer 304 if one of these ETags is current.")
    else:
        yield _header("Idempotency-Key", "A change repeated under the same key is made once.")
    if route.path == "/events":
        yield _header("Last-Event-ID", "The position to continue from; overrides after.")


def _header(name, description, required=False):
    return {"name": name, "in": "header", "required": required, "description": description,
            "schema": {"type": "string"}}


def _first_line(route):
    return route.handler.__doc__.partition("\n")[0]


def _name(route):
    module = route.handler.__module__.rpartition(".")[2]
    return f"{route.spelling.collection}.{module}.{route.handler.__name__}"


def _path_parameters(route):
    for part in route.path.split("/"):
        if part.startswith("{"):
            name = part.strip("{}")
            yield {"name": name, "in": "path", "required": True, "schema": (
                common.UUID if name.endswith("uuid") else common.CLASS_NAME)}


def _query_parameters(schema):
    for name, its in (schema or {}).get("properties", {}).items():
        yield {"name": name, "in": "query", "required": False, "schema": its}
    patterns = (schema or {}).get("patternProperties")
    if patterns:
        # Each property of an exploded object is a parameter.
        yield {"name": "groups", "in": "query", "required": False, "style": "form",
               "explode": True, "schema": {
                   "type": "object", "patternProperties": patterns,
                   "additionalProperties": False}}


def _responses(route, answer):
    found = {"description": "Done", "headers": {name: {"schema": {"type": "string"}} for name in (
        "x-openstack-request-id", "openstack-api-version", "vary", *_headers(route))}}
    if answer is not None:
        found["content"] = {"application/json": {"schema": answer}}
    elif route.path == "/events":
        found["content"] = {"application/x-ndjson": {"schema": event.EVENT},
                            "text/event-stream": {}}
    refused = {"description": "Refused, and nothing was done", "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Errors"}}}}
    other = {"304": {"description": "The client's copy is current"}} if (
        route.method == "GET" and route.rule is not None) else {}
    if route.confirms:
        other["204"] = {**found, "description": "It is there already"}
    return {str(route.status): found, **other, "4XX": refused, "503": refused, "504": refused}


def _headers(route):
    """Yield the headers that only the answers of some routes have."""
    if route.status == 201 or route.locates:
        yield "location"
    if ("{uuid}" in route.path and route.method != "DELETE") or (
            "{consumer_uuid}" in route.path and route.method == "GET"):
        yield "etag"
    if route.answer is not None:
        yield "cache-control"
        yield "last-modified"
    if route.method == "GET" and (
            "allocations" in route.path or route.path in (
                "/resource_providers", "/events", "/allocation_candidates", "/consumers",
                "/provider_summaries")):
        yield "placement-position"


def _either(one, other):
    """Merge the operations of two variants of one method, for which OpenAPI has no notation."""
    schemas = [each["requestBody"]["content"]["application/json"]["schema"]
               for each in (one, other)]
    known = schemas[0].get("anyOf", [schemas[0]])
    named = [each["name"] for each in one["parameters"] if "name" in each]
    return {
        **one,
        "summary": f"{one['summary']} {other['summary']}",
        "parameters": [*one["parameters"], *(
            each for each in other["parameters"] if each.get("name") not in (None, *named))],
        "requestBody": {"required": True, "content": {"application/json": {
            "schema": {"anyOf": [*known, schemas[1]]}}}},
        "responses": _both(one["responses"], other["responses"])}


def _both(one, other):
    """Merge the answers of two variants; an answer of both has either schema."""
    found = {**other, **one}
    for status in one.keys() & other.keys():
        contents = [each[status].get("content", {}).get("application/json") for each in (
            one, other)]
        if all(contents) and contents[0] != contents[1]:
            found[status] = {**one[status], "content": {"application/json": {"schema": {"anyOf": [
                each["schema"] for each in contents]}}}}
    return found
