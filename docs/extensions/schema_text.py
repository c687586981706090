# SPDX-License-Identifier: Apache-2.0
"""JSON schemas as tables in reStructuredText."""

from collections.abc import Iterable, Iterator
from typing import Any

_DEPTH = 6
_ENVELOPE = "placement_object.data"


class Schemas:
    """Reads the schemas of a document.

    :param document: dict, of OpenAPI or AsyncAPI
    """

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def resolved(self, schema: Any) -> Any:
        """Return the schema that a reference names; a schema that is no reference is returned."""
        while isinstance(schema, dict) and "$ref" in schema:
            found = self._document
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        return schema

    def fields(self, schema: Any, prefix: str = "", depth: int = 0) -> Iterator[list[str]]:
        """Yield a row for each property of an object, and of the objects in it.

        :returns: iterator of lists: the path, the type, and whether it has to be there
        """
        schema = self._opened(schema)
        for kind in _alternatives(schema):
            kind = self._opened(kind)
            if kind is not schema and prefix:
                yield from self.fields(kind, prefix, depth + 1)
        needed = schema.get("required", ())
        for name, its in _properties(schema):
            path = f"{prefix}{name}"
            since = f"since {its['x-since']}" if "x-since" in its else ""
            yield [f"``{path}``", self.type(its), "yes" if name in needed else since]
            if depth < _DEPTH:
                yield from self._within(its, path, depth)

    def _within(self, schema, path, depth):
        schema = self._opened(schema)
        for kind in [schema, *_alternatives(schema)]:
            kind = self._opened(kind)
            if "items" in kind:
                yield from self.fields(kind["items"], f"{path}[].", depth + 1)
            elif "properties" in kind or "patternProperties" in kind or isinstance(
                    kind.get("additionalProperties"), dict):
                yield from self.fields(kind, f"{path}.", depth + 1)

    def _opened(self, schema):
        """Return a schema without a reference, and that of an object without its envelope."""
        schema = self.resolved(schema)
        if not isinstance(schema, dict):
            return {}
        return schema.get("properties", {}).get(_ENVELOPE, schema)

    def type(self, schema: Any) -> str:
        """Return the type of a value in words."""
        if isinstance(schema, dict) and "$ref" in schema:
            title = self.resolved(schema).get("title")
            if title:
                return title
        schema = self.resolved(schema)
        if not isinstance(schema, dict):
            return "any"
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            shown = ", ".join(f"``{each}``" for each in values[:4])
            return shown if len(values) <= 4 else f"{shown}, ... ({len(values)} values)"
        alternatives = _alternatives(schema)
        if alternatives:
            return " or ".join(dict.fromkeys(self.type(each) for each in alternatives))
        types = schema.get("type", "any")
        types = [types] if isinstance(types, str) else types
        return " or ".join(self._word(each, schema) for each in types)

    def _word(self, name, schema):
        if name == "string" and "format" in schema:
            return str(schema["format"])
        if name == "array" and "items" in schema:
            return f"list of {self.type(schema['items'])}"
        if name in ("integer", "number") and schema.get("minimum") in (0, 1):
            return f"{name} from {schema['minimum']}"
        if name == "string" and "maxLength" in schema and schema["maxLength"]:
            return f"text of at most {schema['maxLength']}"
        return str(name)


def _properties(schema):
    """Yield the names and schemas of properties; a name in brackets stands for any of a kind."""
    yield from schema.get("properties", {}).items()
    for pattern, its in schema.get("patternProperties", {}).items():
        yield "[uuid]" if "{36}" in pattern else "[name]", its
    if isinstance(schema.get("additionalProperties"), dict):
        is_uuid = schema.get("propertyNames", {}).get("format") == "uuid"
        yield "[uuid]" if is_uuid else "[name]", schema["additionalProperties"]


def _alternatives(schema):
    return [each for word in ("anyOf", "oneOf") for each in schema.get(word, ())]


def table(header: list[str], rows: Iterable[list[str]], widths: str) -> list[str]:
    """Return the lines of a list-table; none if there are no rows."""
    found = list(dict.fromkeys(map(tuple, rows)))
    if not found:
        return []
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *found]:
        for number, cell in enumerate(row):
            lines.append(f"   {'* -' if number == 0 else '  -'} {cell}".rstrip())
    return [*lines, ""]


def title(text: str, line: str) -> list[str]:
    """Return the lines of a heading."""
    return [text, line * len(text), ""]


def as_rst(markdown: str) -> list[str]:
    """Return the lines of a description, which has no other markup than backticks."""
    return [*markdown.replace("`", "``").splitlines(), ""]
