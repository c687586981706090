# SPDX-License-Identifier: Apache-2.0
"""The description of the API in OpenAPI, made of the table of routes and the schemas."""

import functools

import placement_rpc
from placement_rpc import policies
from placement_rpc.http import microversion
from placement_rpc.schemas import common, event


@functools.cache
def document():
    """The OpenAPI document of the newest microversion.

    :returns: dict
    """
    # The table names this module's reader among its handlers.
    from placement_rpc.http import routes
    rules = {rule.name: rule.description for rule in policies.list_rules()}
    paths = {}
    for route in routes.ROUTES:
        operations = paths.setdefault(route.path, {})
        name = route.method.lower()
        made = _operation(route, rules, routes.at)
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


def _operation(route, rules, at):
    version = microversion.MAX
    operation = {
        "operationId": _name(route), "summary": rules.get(route.rule, _first_line(route)),
        "x-since": microversion.text(route.since),
        "parameters": [{"$ref": "#/components/parameters/Microversion"},
                       *_path_parameters(route), *_query_parameters(at(route.query, version))],
        "responses": _responses(route, at(route.answer, version))}
    if route.rule is None:
        operation["security"] = []
    body = at(route.body, version)
    if body is not None:
        operation["requestBody"] = {
            "required": True, "content": {"application/json": {"schema": body}}}
    if route.variant is not None:
        operation["parameters"].append({
            "name": route.variant, "in": "query", "required": False, "allowEmptyValue": True,
            "schema": {"type": "string", "maxLength": 0}})
    if route.spelling.needs_etag and route.method == "PUT":
        operation["parameters"].append({
            "name": "If-Match", "in": "header", "required": True, "schema": {"type": "string"}})
    return operation


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


def _responses(route, answer):
    found = {"description": "Done"}
    if answer is not None:
        found["content"] = {"application/json": {"schema": answer}}
    elif route.path == "/events":
        found["content"] = {"application/x-ndjson": {"schema": event.EVENT},
                            "text/event-stream": {}}
    refused = {"description": "Refused, and nothing was done", "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Errors"}}}}
    return {str(route.status): found, "4XX": refused, "503": refused}


def _either(one, other):
    """Two variants of one method, which OpenAPI has no words for but these."""
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
        "responses": {**other["responses"], **one["responses"]}}
