# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement shadow``: a rehearsal with the requests of an access log."""

import contextlib
import sys
import threading

from placement_rpc.cmd import (
    output,
    shadow_credentials,
    shadow_output,
    state_file,
)
from placement_rpc.moving import access_log, placement_service, shadow
from placement_rpc.moving.placement_service import Pace, PlacementService
from placement_rpc.moving.request_sample import RequestSample
from placement_rpc.moving.shadow_report import ShadowReport

_NOT_COMPARED = 2


def run(options, conf):
    style = output.style_of(options.format)
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
    with output.progress("Reading the log") as advance:
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
    if not report.is_good:
        return 1
    return 0 if report.is_complete else _NOT_COMPARED


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
