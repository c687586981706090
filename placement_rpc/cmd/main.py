# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc``: run the service in one process, or query a running one."""

import argparse
import contextlib
import functools
import importlib
import logging
import sys
import time

import rich.progress

import placement_rpc
from placement_rpc import api, bodies, exception
from placement_rpc import conf as configuration
from placement_rpc.amqp.broker import Broker
from placement_rpc.cmd import (
    arguments,
    config_sources,
    errors,
    listen,
    output,
    state_file,
    usage_report,
)
from placement_rpc.notifications.stream import StreamReader
from placement_rpc.objects import codec

# The exit code if the service does not answer; 1 is any other error, and argparse's is 2.
_UNREACHABLE = 3

# Seconds; no call takes longer than a day.
_LONGEST = 86_400
_MAX_PORT = 65535

# Commands that read events and make no call.
_OF_EVENTS = {"listen": listen, "usage-report": usage_report}
_FORMATS = {"listen": ("auto", "table", "json", "cloudevents"),
            "usage-report": usage_report.FORMATS}


def _ping(client, options):
    began = time.monotonic()
    answer = client.ping(None, timeout=options.timeout)
    answer["milliseconds"] = round((time.monotonic() - began) * 1000, 1)
    del answer["time"]
    output.show([answer], ["host", "pid", "version", "rpc_version", "milliseconds"],
                options.format)


def _providers(client, options):
    found = client.list_providers(
        None, name=options.name, limit=options.limit, timeout=options.timeout)
    output.show([codec.plain(each) for each in found.objects], ["uuid", "name", "generation"],
                options.format)


def _usages(client, options):
    if options.provider:
        providers = [client.get_provider(None, uuid, timeout=options.timeout)
                     for uuid in options.provider]
    else:
        providers = client.list_providers(
            None, limit=options.limit, timeout=options.timeout).objects
    rows = []
    for provider in rich.progress.track(
            providers, "Reading usages", transient=True, disable=not sys.stderr.isatty(),
            console=rich.console.Console(stderr=True)):
        for usage in client.get_usages(None, provider.uuid, timeout=options.timeout).objects:
            share = usage.used / usage.capacity if usage.capacity else 0
            rows.append({"provider": provider.name, "uuid": provider.uuid,
                         "resource_class": usage.resource_class, "used": usage.used,
                         "capacity": usage.capacity, "percent": round(100 * share, 1)})
    output.show(rows, ["provider", "resource_class", "used", "capacity", "percent"],
                options.format)


def _services(client, options):
    found = client.get_versions(None, timeout=options.timeout)
    output.show([codec.plain(each) for each in found.objects],
                ["binary", "host", "worker", "version", "rpc_version", "last_seen_at", "alive"],
                options.format)


def _common_options():
    """Return a parser with the options that all commands have."""
    parser = argparse.ArgumentParser(
        prog="placement-rpc", description="Resource accounting for clouds on the message bus.")
    parser.add_argument("--version", action="version", version=placement_rpc.__version__)
    config_sources.add_arguments(parser)
    parser.add_argument("--transport-url", metavar="URL",
                        help="the bus, as rabbit://user:password@host:port/ (default: as "
                             "configured, or that of the service in the state directory)")
    parser.add_argument("--state-dir", metavar="PATH",
                        help="state directory of a standalone service (default: ./state)")
    parser.add_argument("--local", action="store_true",
                        help="read the service's database directly instead of calling it")
    parser.add_argument("--debug", action="store_true",
                        help="show the log, and the traceback of an error")
    return parser


def _parser():
    parser = _common_options()
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "run the whole service in this process"
    command = commands.add_parser("standalone", help=text, description=text.capitalize())
    _add_standalone_arguments(command)
    for name, call, text in (
            ("ping", _ping, "check that the service answers, and measure how fast"),
            ("providers", _providers, "list resource providers"),
            ("usages", _usages, "show usage and capacity of each class of each provider"),
            ("services", _services, "list the processes of the service and their versions"),
            ("listen", None, "show events as they happen, or from a position or time on"),
            ("usage-report", None, "compute resource-hours from the events")):
        command = commands.add_parser(name, help=text, description=text.capitalize())
        command.set_defaults(call=call)
        command.add_argument("--format", choices=_FORMATS.get(name, ("auto", "table", "json")),
                             default="auto",
                             help="auto is a table on a terminal and JSON elsewhere")
        if name in _OF_EVENTS:
            _OF_EVENTS[name].add_arguments(command)
            continue
        command.add_argument("--timeout", type=_seconds, default=10, metavar="SECONDS",
                             help="time limit of each call (default: 10)")
        if name in ("providers", "usages"):
            command.add_argument("--limit", type=arguments.positive, metavar="N",
                                 help="show only the first N providers")
        if name == "providers":
            command.add_argument("--name", help="show only the provider with this name")
        if name == "usages":
            command.add_argument("provider", nargs="*", metavar="UUID",
                                 help="providers to show (default: all)")
    return parser


def _seconds(text):
    value = float(text)
    if not 0 <= value < _LONGEST:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def _port(text):
    value = int(text)
    if not 0 <= value <= _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port, 0 to {_MAX_PORT}")
    return value


def _add_standalone_arguments(parser):
    parser.add_argument(
        "--bus", choices=("inprocess", "rabbit"), default="inprocess",
        help="inprocess: calls are made in this process only, over HTTP; rabbit: start a "
             "private RabbitMQ that other processes can call over")
    parser.add_argument(
        "--database", metavar="URL",
        help="SQLAlchemy URL (default: an SQLite file in the state directory)")
    parser.add_argument(
        "--http-port", type=_port, metavar="PORT",
        help="port of the HTTP facade, 0 for any free one (default: [api] bind_port, 8778)")


def _service_module(name):
    """Import a module of this package that needs the extra ``service``.

    A client's installation lacks the extra, so the program imports such a module only for the
    command that needs it.

    :raises ExtraMissing: if the extra is not installed
    """
    try:
        return importlib.import_module(f"placement_rpc.cmd.{name}")
    except ModuleNotFoundError as error:
        raise errors.ExtraMissing(
            f"{error.name} is not installed; this command needs the extra 'service': "
            "pip install 'placement-rpc[service]'") from None


def _call(options, conf):
    """Run a command against the service that the options name."""
    running = state_file.read(conf.standalone.state_dir)
    if options.local and options.command != "listen":
        return _service_module("local").run(options, conf, running)
    url = options.transport_url or conf.transport_url
    if url == "rabbit://":
        if running is None:
            raise exception.ServiceUnavailable(
                reason="no service runs on the state directory "
                       f"{conf.standalone.state_dir!r} and no transport_url is configured; set "
                       "one, or name the directory with --state-dir")
        url = running["transport_url"]
        if url.startswith("inprocess:"):
            raise exception.ServiceUnavailable(
                reason="its bus is inside its own process; start it with 'make run BUS=rabbit', "
                       "or read its database with --local")
    if options.command in _OF_EVENTS:
        reader = functools.partial(
            StreamReader, _broker(conf, url), conf.notifications.stream,
            limits=bodies.Limits.of_answers(conf))
        if options.command == "listen":
            return listen.run(reader, options)
        return usage_report.from_stream(
            reader, options, 2 * conf.notifications.snapshot_period)
    with api.PlacementAPI(conf=conf, transport_url=url) as client:
        options.call(client, options)
    return 0


def _broker(conf, url):
    broker = Broker.of(conf, url)
    if broker is None:
        raise exception.ServiceUnavailable(
            reason="only RabbitMQ has a stream of events; give its address with --transport-url")
    return broker


@errors.one_line_errors("placement-rpc")
def main(args=None):
    options = _parser().parse_args(args)
    conf = configuration.new_config(config_sources.arguments(options))
    if options.state_dir:
        conf.set_override("state_dir", options.state_dir, group="standalone")
    if options.command == "standalone":
        return _service_module("standalone").run(options, conf)
    if options.debug:
        logging.basicConfig(level=logging.INFO)
    # 'listen' goes on while the broker is away, and its log says so.
    is_quiet = options.command != "listen"
    try:
        with errors.quietly(args) if is_quiet else contextlib.nullcontext():
            return _call(options, conf)
    except (exception.ServiceUnavailable, exception.DeadlineExceeded,
            exception.StoreUnavailable, exception.StoreBusy) as error:
        errors.report("placement-rpc", error, args)
        return _UNREACHABLE


if __name__ == "__main__":
    sys.exit(main())
