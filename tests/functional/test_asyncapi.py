# SPDX-License-Identifier: Apache-2.0
"""The AsyncAPI document: it is current and valid, and real messages match it.

``python -m tests.functional.test_asyncapi`` writes the committed copy again.

``tests/data/asyncapi/3.0.0.json`` is the schema of the AsyncAPI initiative, from the package
``@asyncapi/specs`` 6.11.1 on npm (the file ``schemas/3.0.0-without-$id.json``), with its licence.
"""

import json
import pathlib

import jsonschema

from placement_rpc import conf
from placement_rpc.notifications import envelope
from placement_rpc.objects import catalog
from placement_rpc.rpc import command_queue
from placement_rpc.service import asyncapi
from placement_rpc.versions import contract
from tests import base
from tests.upgrade import golden

_ROOT = pathlib.Path(__file__).parents[2]
COPY = _ROOT / "docs" / "asyncapi.json"
_OFFICIAL = _ROOT / "tests" / "data" / "asyncapi" / "3.0.0.json"
_SAMPLES = _ROOT / "docs" / "notification_samples"


def written():
    """Return the text of the document of the default configuration."""
    return json.dumps(asyncapi.document(conf.new_config()), indent=1) + "\n"


class DocumentTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.document = json.loads(COPY.read_text())

    def validator(self, message):
        return jsonschema.Draft7Validator(
            {"$ref": f"#/components/messages/{message}/payload", **self.document},
            format_checker=jsonschema.FormatChecker())

    def test_the_committed_copy_is_current(self):
        """If this fails, run ``make sample``."""
        self.assertEqual(COPY.read_text(), written())

    def test_it_is_valid_by_the_official_schema(self):
        official = jsonschema.Draft7Validator(json.loads(_OFFICIAL.read_text()))
        self.assertEqual([], [each.message for each in official.iter_errors(self.document)])
        # So that the test does not pass because the schema accepts everything.
        self.assertFalse(official.is_valid({**self.document, "channels": {"events": 1}}))

    def test_all_references_lead_somewhere(self):
        def check(value):
            if isinstance(value, dict) and "$ref" in value:
                found = self.document
                for part in value["$ref"].removeprefix("#/").split("/"):
                    self.assertIn(part, found, value["$ref"])
                    found = found[part]
            elif isinstance(value, (dict, list)):
                for each in value.values() if isinstance(value, dict) else value:
                    check(each)

        check(self.document)

    def test_it_has_every_event_and_command(self):
        castable = {name for name, call in contract.CALLS.items() if call.castable}
        self.assertEqual({*catalog.EVENTS, *castable},
                         set(self.document["components"]["messages"]))
        channels = self.document["channels"]
        self.assertEqual(set(catalog.EVENTS), set(channels["events"]["messages"]))
        self.assertEqual(castable, set(channels["commands"]["messages"]))

    def test_samples_of_events(self):
        files = sorted(_SAMPLES.glob("*.json"))
        self.assertEqual(len(catalog.EVENTS), len(files))
        for path in files:
            sample = json.loads(path.read_text())
            self.validator(path.stem).validate(sample)
            self.check_fields(sample["payload"])

    def check_fields(self, sample):
        """Check that the document has every field of an object, and of those in it."""
        if isinstance(sample, list):
            for each in sample:
                self.check_fields(each)
        if not isinstance(sample, dict) or "placement_object.name" not in sample:
            return
        data = sample["placement_object.data"]
        schema = self.document["components"]["schemas"][sample["placement_object.name"]]
        described = schema["properties"]["placement_object.data"]["properties"]
        self.assertEqual([], sorted(set(data) - set(described)))
        for each in data.values():
            self.check_fields(each)

    def test_events_of_all_releases(self):
        for release in golden.recorded():
            events = json.loads((golden.DIRECTORY / release.name / "events.json").read_text())
            self.assertGreater(len(events), 10)
            for event in events:
                self.validator(event["event_type"]).validate(event)

    def test_a_wrong_event_is_refused(self):
        path = _SAMPLES / "allocation.create.json"
        for field, value in (("consumer_uuid", 5), ("generation", "x"), ("before", {"VCPU": "1"})):
            sample = json.loads(path.read_text())
            data = sample["payload"]["placement_object.data"]
            if field not in data:
                data = data["providers"][0]["placement_object.data"]
            data[field] = value
            self.assertFalse(self.validator("allocation.create").is_valid(sample), field)

    def test_what_is_on_the_wire_is_in_the_envelope(self):
        class Row:
            event_id, event_type, occurred_at = base.new_uuid(), "trait.create", "2026-11-21"
            payload, position, epoch = '{"position": null}', 7, None

        body = json.loads(envelope.sealed(Row))
        jsonschema.Draft7Validator(
            self.document["components"]["schemas"]["Envelope"]).validate(body)
        jsonschema.Draft7Validator(
            self.document["components"]["schemas"]["Notification"]).validate(
                json.loads(body["oslo.message"]))

    def test_commands_of_all_releases(self):
        sent = 0
        for release in golden.recorded():
            calls = json.loads((golden.DIRECTORY / release.name / "calls.json").read_text())
            for call in calls:
                message = call["message"]
                if not contract.CALLS[message["method"]].castable:
                    continue
                if "failure" in call["answer"] and "InvalidInput" in str(call["answer"]):
                    continue
                body = json.loads(command_queue.sealed(
                    message["version"], message["method"], message["args"], call["context"]))
                self.validator(message["method"]).validate(body)
                sent += 1
        self.assertGreater(sent, 10)


if __name__ == "__main__":
    COPY.write_text(written())
    print(COPY)
