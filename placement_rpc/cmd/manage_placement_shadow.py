# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement shadow``: a rehearsal with the requests of an access log."""

import argparse
import contextlib
import re
import sys
import threading

from placement_rpc.cmd import (
    arguments,
    output,
    shadow_credentials,
    shadow_output,
    state_file,
)
from placement_rpc.moving import access_log, placement_service, shadow
from placement_rpc.moving.placement_service import Pace, PlacementService
from placement_rpc.moving.request_sample import RequestSample
from placement_rpc.moving.shadow_report import ShadowReport

_DESCRIPTION = """\
Ask two services the read requests of an access log, and compare their answers and how long they
take. Only GET is ever sent. Lists are compared as sets. Of candidates that a limit cut off, the
number counts, what is said of providers that both services name, and whether some candidates of
each are candidates of the other.

Formats of logs: common and combined (Apache, nginx, gunicorn, HAProxy), uWSGI's, Placement's
request log, JSON lines, and lines like "GET /usages?project_id=p 1.38". Other lines are counted
and left out. Only Placement's request log says the microversion by itself; Apache and nginx do if
their format has the header OpenStack-API-Version.

Verdicts: same; different (though both stores agree about the providers in question); data (the
stores differ, as they do when the cloud went on after the last import); moving (the old service's
answer changed meanwhile); forbidden (403 from both, so nothing was compared).

Exits with 1 if there are answers of the verdicts different, data or forbidden, or none at all.
"""
_VERSION = re.compile(r"1\.\d{1,4}|latest")
_MAX_THREADS = 64


def add_command(commands):
    """Add ``placement shadow``.

    :param commands: the sub-parsers of the group
    """
    text = "ask two services the read requests of an access log, and compare the answers"
    command = commands.add_parser(
        "shadow", help=text, description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--url", required=True, metavar="URL",
                         help="the old service, for example https://old.example.org/placement")
    command.add_argument("--against", metavar="URL",
                         help="the new service (default: that of the state directory, or "
                              "[api] bind_host and bind_port of the configuration)")
    command.add_argument("--requests", action="append", required=True, metavar="FILE",
                         help="access log, which may be compressed with gzip; - is standard "
                              "input; may be given several times")
    command.add_argument("--microversion", action="append", type=_microversion, metavar="1.N",
                         help="microversion of requests whose lines do not say it; if it is given "
                              "several times, they are asked at each (default: the newest that "
                              "both services have)")
    command.add_argument("--os-cloud", metavar="NAME",
                         help="cloud of clouds.yaml whose credentials are used (default: the "
                              "variables OS_*; OS_AUTH_TYPE=none for services without keystone)")
    command.add_argument("--against-os-cloud", metavar="NAME",
                         help="the same for the new service, if it is another cloud's")
    _add_limits(command)
    command.add_argument("--dry-run", action="store_true",
                         help="read the log and show what would be asked; send nothing")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto",
                         help="auto is tables on a terminal and JSON elsewhere")
    command.set_defaults(run=_shadow, needs_database=False)


def _add_limits(command):
    for name, type_, default, text in (
            ("sample", arguments.positive, 500,
             "different requests of each kind, such as GET /usages, that are asked at most; the "
             "same ones in each run (default: 500)"),
            ("rate", _rate, 20.0,
             "requests per second to each service at most; 0 is no limit (default: 20)"),
            ("concurrency", _threads, 1,
             "requests at a time; with more than one they wait for each other in the services, "
             "and the latencies show it (default: 1)"),
            ("timeout", _rate, 60.0, "seconds for which an answer is awaited (default: 60)"),
            ("show", arguments.positive, 20, "differences that the table shows (default: 20)")):
        command.add_argument(f"--{name}", type=type_, default=default, help=text,
                             metavar="SECONDS" if name == "timeout" else "N")


def _microversion(text):
    if not _VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text} is not a microversion, such as 1.36")
    return text


def _threads(text):
    value = arguments.positive(text)
    if value > _MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text} is more than {_MAX_THREADS}")
    return value


def _rate(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 on")
    return value


def _shadow(options, conf):
    style = options.format
    if style == "auto":
        style = "table" if sys.stdout.isatty() else "json"
    log = access_log.AccessLog([placement_service.address_parts(options.url).path])
    sample = _read(log, options)
    shadow_output.describe_log(log)
    if not log.reads:
        raise ValueError("the log has no read request to one of Placement's addresses; "
                         "'placement shadow --help' lists the formats that are read")
    if options.dry_run:
        shadow_output.show_sample(sample.requests(), style)
        return 0
    return _compare(sample.requests(), log, style, options, conf)


def _read(log, options):
    sample = RequestSample(options.sample)
    with output.counter("Reading the log") as advance:
        for name in options.requests:
            with (contextlib.nullcontext(sys.stdin.buffer) if name == "-"
                  else open(name, "rb")) as file:
                try:
                    for logged in log.read(file):
                        sample.add(logged)
                        advance(1)
                except OSError as error:
                    raise OSError(f"{name} cannot be read: {error}") from error
    return sample


def _compare(requests, log, style, options, conf):
    """Compare, and print what was found, also after an interrupt or when a service is lost."""
    stopped = threading.Event()
    old, new = _services(options, conf, stopped)
    newest = min(old.newest_microversion(), new.newest_microversion())
    rehearsal = shadow.Rehearsal(
        old, new, options.microversion or [".".join(map(str, newest))], options.concurrency,
        stopped)
    size, report, failure = rehearsal.size(requests), ShadowReport(), None
    try:
        with shadow_output.progress(size) as advance:
            for result in rehearsal.results(requests):
                report.add(result)
                advance(result)
    except (KeyboardInterrupt, ConnectionError, PermissionError) as error:
        failure = error
    facts = {"old": old.name, "new": new.name, "planned": size}
    if style == "json":
        shadow_output.print_json(report, log, facts)
    else:
        shadow_output.print_tables(report, facts, options.show)
    if failure is not None:
        print(f"The comparison stopped after {report.asked} of {size} requests.",
              file=sys.stderr)
        raise failure
    return 0 if report.is_good else 1


def _services(options, conf, stopped):
    against = options.against or _own_address(options, conf)
    credentials = shadow_credentials.of_cloud(options.os_cloud)
    of_new = credentials if options.against_os_cloud is None else (
        shadow_credentials.of_cloud(options.against_os_cloud))
    return [PlacementService(url, its, Pace(options.rate, stopped), options.timeout or None)
            for url, its in ((options.url, credentials), (against, of_new))]


def _own_address(options, conf):
    """Return the address of the service in the state directory, or the configured one."""
    running = state_file.read(options.state_dir or conf.standalone.state_dir) or {}
    host = conf.api.bind_host
    return running.get("http_url") or (
        f"http://{f'[{host}]' if ':' in host else host}:{conf.api.bind_port}")
