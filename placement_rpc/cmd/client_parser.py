# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc``.

Printing help and completing a command line load none of the libraries that a command needs, so
this module imports none of them.
"""

import argparse

import placement_rpc
from placement_rpc.cmd import arguments, config_sources

# Seconds; no call takes longer than a day.

#: Commands that read the stream of events.
OF_EVENTS = ("listen", "usage-report")
_COMMANDS = (
    ("ping", "check that the service answers, and measure how fast"),
    ("providers", "list resource providers"),
    ("usages", "show usage and capacity of each class of each provider"),
    ("services", "list the processes of the service and their versions"),
    ("top", "show rates, latencies, queues, outbox, index and the fullest providers, live"),
    ("listen", "show events as they happen, or from a position or time on"),
    ("usage-report", "compute resource-hours from the events"),
)
_FORMATS = {"listen": (*arguments.ROWS, "cloudevents"), "top": arguments.DOCUMENT}


def parser():
    """Return the parser of ``placement-rpc``."""
    whole = _common_options()
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "run the whole service in this process"
    _add_standalone(commands.add_parser("standalone", help=text, description=text.capitalize()))
    text = "print the script that completes command lines in a shell"
    completion = commands.add_parser("completion", help=text, description=(
        f"{text.capitalize()}. For the current shell: source <(placement-rpc completion bash)"))
    completion.add_argument("shell", choices=("bash", "zsh"), help="the shell")
    of_events = {"listen": _add_listen, "usage-report": _add_usage_report}
    for name, text in _COMMANDS:
        command = commands.add_parser(name, help=text, description=text.capitalize())
        arguments.add_format(command, _FORMATS.get(name, arguments.ROWS))
        if name in OF_EVENTS:
            of_events[name](command)
            continue
        command.add_argument("--timeout", type=arguments.seconds, default=10, metavar="SECONDS",
                             help="time limit of each call (default: 10)")
        if name == "top":
            _add_top(command)
        if name in ("providers", "usages"):
            command.add_argument("--limit", type=arguments.positive, metavar="N",
                                 help="show only the first N providers")
        if name == "providers":
            command.add_argument("--name", help="show only the provider with this name")
        if name == "usages":
            command.add_argument("provider", nargs="*", metavar="UUID",
                                 help="providers to show (default: all)")
    return whole


def _common_options():
    """Return a parser with the options that all commands have."""
    common = argparse.ArgumentParser(
        prog="placement-rpc", description="Resource accounting for clouds on the message bus.")
    common.add_argument("--version", action="version", version=placement_rpc.__version__)
    config_sources.add_arguments(common)
    common.add_argument("--transport-url", type=arguments.url, metavar="URL",
                        help="the bus, as rabbit://user:password@host:port/ (default: as "
                             "configured, or that of the service in the state directory)")
    config_sources.add_state_dir(common)
    common.add_argument("--local", action="store_true",
                        help="read the service's database directly instead of calling it, also "
                             "if it does not run")
    common.add_argument("--debug", action="store_true",
                        help="show the log, and the traceback of an error")
    return common


def _add_standalone(command):
    command.add_argument(
        "--bus", choices=("inprocess", "rabbit"),
        help="inprocess: calls are made in this process only, over HTTP; rabbit: start a "
             "private RabbitMQ that other processes can call over; it is a new one "
             "each time, without the queues of listeners, and gets the events of an SQLite file "
             "again (default: the configured transport_url, else inprocess)")
    command.add_argument(
        "--database", type=arguments.url, metavar="URL",
        help="SQLAlchemy URL (default: an SQLite file in the state directory)")
    command.add_argument(
        "--http-port", type=arguments.port, metavar="PORT",
        help="port of the HTTP facade, 0 for any free one (default: [api] bind_port, 8778)")


def _add_top(command):
    command.add_argument("--once", action="store_true", help="show one screen and exit")
    command.add_argument("--interval", type=arguments.seconds, default=2, metavar="SECONDS",
                         help="time over which rates are taken, and after which the screen is "
                              "drawn again (default: 2)")
    command.add_argument("--metrics", action="append", metavar="URL",
                         help="address of a process's metrics, as http://host:port/metrics; "
                              "given again for each process (default: that of the service in the "
                              "state directory)")


def _add_listen(command):
    command.add_argument("--from", dest="start", type=_start, default=None,
                         metavar="POSITION|TIME",
                         help="begin at a position, or at a time in ISO 8601 (default: now)")
    command.add_argument("--event-type", metavar="GLOB",
                         help="show only these types, for example 'allocation.*'")
    command.add_argument("--provider", type=arguments.given_uuid, metavar="UUID",
                         help="show only events of this provider")
    command.add_argument("--count", type=arguments.positive, metavar="N",
                         help="exit after N events")
    command.add_argument("--idle", type=arguments.seconds, metavar="SECONDS",
                         help="exit after this long without an event")


def _add_usage_report(command):
    command.add_argument("--from", dest="begin", type=arguments.moment, required=True,
                         metavar="TIME",
                         help="beginning of the period, ISO 8601; local time without a zone")
    command.add_argument("--to", dest="end", type=arguments.moment, metavar="TIME",
                         help="end of the period (default: now)")
    command.add_argument("--project", metavar="ID", help="report only this project")
    command.add_argument("--resource-class", metavar="CLASS", help="report only this class")
    command.add_argument("--details", action="store_true",
                         help="have a line of the table for each user and provider; by default it "
                              "sums them up by project and class. JSON and CSV always have both")
    command.add_argument("--allow-incomplete", action="store_true",
                         help="report even if required events are missing")


def _start(text):
    return arguments.positive(text) if text.isdigit() else arguments.moment(text)
