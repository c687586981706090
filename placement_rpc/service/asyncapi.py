# SPDX-License-Identifier: Apache-2.0
"""The AsyncAPI document of the events and of the durable commands.

It is generated from the catalogue of events, the table of calls and the versioned objects. Calls
that wait for an answer are not part of it: they are made with the client library, or with
oslo.messaging's.
"""

import inspect
from typing import Any

from oslo_config import cfg

import placement_rpc
from placement_rpc import context
from placement_rpc.manager import Manager
from placement_rpc.notifications import envelope
from placement_rpc.objects import base, catalog, fields, wire_schema
from placement_rpc.objects.claim import CONSUMER_TAGS
from placement_rpc.rpc import command_queue, routing
from placement_rpc.versions import contract

_LICENSE = {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}
_EVENTS, _STREAM, _COMMANDS = "events", "eventStream", "commands"
_BINDING = "0.3.0"
_TEXT = {"type": "string"}

_DESCRIPTION = """\
Events of committed changes, and commands that wait in a durable queue until their change is
committed.

Events are notifications of oslo.messaging in its envelope 2.0. The payload of each message here is
the notification *in* the envelope, as an oslo.messaging listener gets it; `x-envelope` refers to
the body on the wire. Events are published at least once: `message_id` identifies repetitions. They
are in the order of `position`, without gaps. The addresses are those of the default configuration.
"""


def document(conf: cfg.ConfigOpts) -> dict[str, Any]:
    """Return the AsyncAPI document.

    :param conf: made by :mod:`placement_rpc.conf`; its topic, stream and limits are in it
    :returns: dict of JSON values
    """
    commands = sorted(name for name, call in contract.CALLS.items() if call.castable)
    classes = {event.payload for event in catalog.EVENTS.values()}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "placement_rpc", "version": contract.RPC_VERSION, "license": _LICENSE,
            "description": _DESCRIPTION, "x-release": placement_rpc.__version__},
        "defaultContentType": "application/json",
        "servers": {"rabbitmq": {
            "host": "{host}:5672", "protocol": "amqp", "protocolVersion": "0.9.1",
            "description": "RabbitMQ, or a cluster of it; with TLS on port 5671",
            "variables": {"host": {"default": "localhost"}}}},
        "channels": _channels(conf, commands),
        "operations": _operations(commands),
        "components": {
            "messages": {
                **{name: _event(name, event) for name, event in catalog.EVENTS.items()},
                **{name: _command(name) for name in commands}},
            "schemas": {
                "Envelope": _envelope(), "Notification": _notification(),
                "Context": context.wire_schema(),
                **wire_schema.schemas({*classes, *_objects_of(commands)})}},
    }


def _channels(conf, commands):
    options = conf.notifications
    routing_key = f"{options.topic}.{envelope.PRIORITY}"
    events = {name: _message(name) for name in catalog.EVENTS}
    return {
        _EVENTS: {
            "address": routing_key, "messages": events,
            "description": f"The routing key of all events on the exchange `{routing.EXCHANGE}`. "
                           "A listener binds a queue of its own to it.",
            "bindings": {"amqp": {
                "is": "routingKey", "bindingVersion": _BINDING,
                "exchange": {"name": routing.EXCHANGE, "type": "topic", "vhost": "/"}}}},
        _STREAM: {
            "address": options.stream, "messages": events,
            "description": "A RabbitMQ stream of the same messages, which can be read from any "
                           "position. `x-arguments` are those of its declaration.",
            "bindings": _queue(options.stream, {
                "x-queue-type": "stream", "x-max-age": options.stream_max_age,
                "x-max-length-bytes": options.stream_max_bytes})},
        _COMMANDS: {
            "address": command_queue.name(routing.TOPIC),
            "messages": {name: _message(name) for name in commands},
            "description": "A quorum queue with one active consumer, so that commands are settled "
                           "in the order in which they were sent. Publish to it through the "
                           "default exchange, persistently and with a confirm.",
            "bindings": _queue(command_queue.name(routing.TOPIC), {"x-queue-type": "quorum"})},
    }


def _queue(name, arguments):
    return {"amqp": {
        "is": "queue", "bindingVersion": _BINDING, "x-arguments": arguments,
        "queue": {"name": name, "durable": True, "exclusive": False, "autoDelete": False,
                  "vhost": "/"}}}


def _operations(commands):
    return {
        "publishEvents": _operation("send", _EVENTS, catalog.EVENTS, "Publish committed changes."),
        "keepEvents": _operation(
            "send", _STREAM, catalog.EVENTS, "Keep committed changes for readers."),
        "settleCommands": _operation(
            "receive", _COMMANDS, commands,
            "Settle the commands that clients send as casts. An event, and the call "
            "`get_request_result`, report the outcome.")}


def _operation(action, channel, names, summary):
    return {"action": action, "summary": summary, "channel": {"$ref": f"#/channels/{channel}"},
            "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in names]}


def _message(name):
    return {"$ref": f"#/components/messages/{name}"}


def _event(name, event):
    cls = event.payload
    return {
        "name": name, "title": name, "summary": event.summary,
        "description": wire_schema.described(cls), "contentType": "application/json",
        "x-envelope": wire_schema.reference("Envelope"),
        "payload": {
            "allOf": [wire_schema.reference("Notification")],
            "type": "object",
            "properties": {"event_type": {"const": name},
                           "payload": wire_schema.reference(cls.obj_name())}}}


def _envelope():
    return {
        "title": "Envelope", "type": "object",
        "description": "The body of an event on the wire: oslo.messaging's envelope 2.0",
        "required": ["oslo.version", "oslo.message"],
        "properties": {
            "oslo.version": {"const": "2.0"},
            "oslo.message": {
                **_TEXT, "contentMediaType": "application/json",
                "description": "The notification as JSON text"}}}


def _notification():
    return {
        "title": "Notification", "type": "object",
        "description": "What oslo.messaging's notifier sends",
        "required": ["message_id", "publisher_id", "event_type", "priority", "timestamp",
                     "payload"],
        "properties": {
            "message_id": {
                **_TEXT, "format": "uuid",
                "description": "The event_id, however often the event is sent"},
            "publisher_id": {"const": envelope.PUBLISHER},
            "event_type": _TEXT,
            "priority": {"const": envelope.PRIORITY.upper()},
            "timestamp": {**_TEXT, "description": "When the change was made, in UTC"},
            "payload": {"type": "object"},
            "_unique_id": {**_TEXT, "description": "Of the delivery, for oslo.messaging"}}}


def _command(name):
    call = contract.CALLS[name]
    arguments = _arguments(name)
    return {
        "name": name, "title": name, "summary": f"The call {name} as a durable command.",
        "contentType": "application/json",
        "payload": {
            "type": "object", "additionalProperties": False,
            "required": ["version", "method", "args", "context"],
            "properties": {
                "version": {
                    **_TEXT, "pattern": r"^1\.[0-9]+$",
                    "description": "Of the contract that the sender knows; at most "
                                   f"{contract.RPC_VERSION}"},
                "method": {"const": name},
                "args": {
                    "type": "object", "additionalProperties": False,
                    "required": [each for each, parameter in arguments.items()
                                 if parameter.default is parameter.empty],
                    "properties": {each: _argument(each, parameter, call)
                                   for each, parameter in arguments.items()}},
                "context": wire_schema.reference("Context")}}}


def _arguments(name):
    """Return the parameters of a method, except the instance and the context."""
    parameters = inspect.signature(getattr(Manager, name)).parameters
    return {each: found for each, found in parameters.items() if each not in ("self", "context")}


def _argument(name, parameter, call):
    annotation = parameter.annotation
    if inspect.isclass(annotation) and issubclass(annotation, base.PlacementObject):
        schema = wire_schema.reference(annotation.obj_name())
    else:
        schema = wire_schema.of_field(fields.field(
            _TYPES[name], nullable=parameter.default is None))
    if name in call.arguments:
        schema["x-since"] = call.arguments[name]
    return schema


# Of the arguments that are no objects.
_TYPES = {
    "request_id": fields.RequestId(), "consumer_uuid": fields.Uuid(),
    "consumer_generation": fields.WholeNumber(maximum=2 ** 63 - 1),
    "consumer_tags": CONSUMER_TAGS}


def _objects_of(commands):
    """Yield the classes of the objects that commands carry."""
    for name in commands:
        for parameter in _arguments(name).values():
            if inspect.isclass(parameter.annotation) and issubclass(
                    parameter.annotation, base.PlacementObject):
                yield parameter.annotation
