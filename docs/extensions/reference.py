# SPDX-License-Identifier: Apache-2.0
"""Sphinx directives that make reference pages from docs/asyncapi.json and docs/openapi.json."""

import json
import pathlib

from docutils.parsers.rst import Directive
from schema_text import Schemas, as_rst, table, title
from sphinx.util.docutils import SphinxDirective

_DOCS = pathlib.Path(__file__).parents[1]
_FIELDS = ["field", "type", "required"]
_WIDTHS = "45 40 15"


class _Reference(SphinxDirective):
    """Base of the directives; the text is parsed as if it stood in the page."""

    source: str

    def run(self):
        path = _DOCS / self.source
        self.env.note_dependency(str(path))
        document = json.loads(path.read_text())
        text = "\n".join(self.lines(document, Schemas(document)))
        return self.parse_text_to_nodes(text, allow_section_headings=True)

    def lines(self, document, schemas):
        """Yield the lines of the page."""
        raise NotImplementedError


class Events(_Reference):
    source = "asyncapi.json"

    def lines(self, document, schemas):
        messages = document["components"]["messages"]
        events = sorted(document["channels"]["events"]["messages"])
        for name in events:
            message = messages[name]
            payload = message["payload"]["properties"]["payload"]
            cls = schemas.resolved(payload)
            yield from title(name, "-")
            yield from as_rst(message["summary"])
            yield from as_rst(message["description"])
            yield from as_rst(f"Payload `{cls['title']}`, version {cls['x-version']}:")
            yield from table(_FIELDS, schemas.fields(payload), _WIDTHS)
            yield from [
                ".. container:: sample", "", "   As it is sent:", "",
                f"   .. literalinclude:: ../notification_samples/{name}.json",
                "      :language: json", ""]


class Commands(_Reference):
    source = "asyncapi.json"

    def lines(self, document, schemas):
        for name in sorted(document["channels"]["commands"]["messages"]):
            message = document["components"]["messages"][name]
            yield from title(name, "-")
            yield from as_rst(message["summary"])
            yield from table(_FIELDS, schemas.fields(message["payload"]), _WIDTHS)


class Channels(_Reference):
    source = "asyncapi.json"

    def lines(self, document, schemas):
        yield from table(["channel", "address", "what it is"], (
            [name, f"``{channel['address']}``", " ".join(as_rst(channel["description"]))]
            for name, channel in document["channels"].items()), "15 30 55")


class Operations(_Reference):
    source = "openapi.json"

    def lines(self, document, schemas):
        for path, operations in document["paths"].items():
            yield from title(path, "-")
            for method, operation in operations.items():
                yield from title(f"{method.upper()} {path}", "~")
                yield from self._operation(operation, schemas)

    def _operation(self, operation, schemas):
        yield from as_rst(operation["summary"])
        if operation.get("security") == []:
            yield from as_rst("Needs no token.")
        yield from as_rst(f"Since microversion {operation['x-since']}.")
        parameters = map(schemas.resolved, operation["parameters"])
        yield from table(["parameter", "in", "type", "meaning"], (
            [f"``{each['name']}``", each["in"], schemas.type(each["schema"]),
             each.get("description", "required" if each["required"] else "")]
            for each in parameters if each["name"] != "OpenStack-API-Version"), "25 10 30 35")
        yield from self._body("Body:", operation.get("requestBody", {}), schemas)
        for status, answer in operation["responses"].items():
            if not status.startswith(("2", "3")):
                continue
            yield from self._body(f"Answer {status}:", answer, schemas)

    def _body(self, heading, holder, schemas):
        content = holder.get("content", {})
        schema = next((each["schema"] for each in content.values() if "schema" in each), None)
        if schema is None:
            if holder:
                yield from [f"{heading.removesuffix(':')} has no body.", ""]
            return
        found = list(schemas.fields({"properties": {"": schema}}))[1:]
        rows = [[each[0].replace("``.", "``").replace("``[].", "``[]."), *each[1:]]
                for each in found]
        yield from [f"{heading} ({', '.join(content)})", ""]
        yield from table(_FIELDS, rows, _WIDTHS)


def setup(app):
    """Register the directives."""
    directives: dict[str, type[Directive]] = {
        "reference-channels": Channels, "reference-events": Events,
        "reference-commands": Commands, "reference-operations": Operations}
    for name, directive in directives.items():
        app.add_directive(name, directive)
    return {"version": "1", "parallel_read_safe": True}
