# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc``: run the service in one process, or query a running one.

A command's modules are imported when it runs: printing help loads none of them.
"""

import contextlib
import importlib
import logging
import sys

from placement_rpc import exception
from placement_rpc.cmd import client_parser, config_sources, errors, state_file

# The exit code if the service does not answer; 1 is any other error, and argparse's is 2.
_UNREACHABLE = 3


def _call(options, conf):
    """Run a command against the service that the options name."""
    running = state_file.read(conf.standalone.state_dir)
    if options.command == "top" and not options.metrics and running and running.get("http_url"):
        options.metrics = [f"{running['http_url']}/metrics"]
    if options.local:
        if options.command == "ping":
            raise exception.InvalidInput(
                what="--local", reason="'ping' asks a running service, and nothing else does")
        if options.command == "listen":
            raise exception.InvalidInput(
                what="--local", reason="the stored events can be reported but not followed: "
                                       "'listen' reads them from RabbitMQ, as they are published")
        return errors.service_module("local").run(options, conf)
    url = options.transport_url or conf.transport_url
    if url == state_file.NO_BUS:
        if running is None:
            raise exception.ServiceUnavailable(
                reason="no service runs on the state directory "
                       f"{conf.standalone.state_dir!r} and no transport_url is configured; set "
                       "one, or name the directory with --state-dir")
        url = running["transport_url"]
        if url.startswith("inprocess:"):
            raise exception.ServiceUnavailable(
                reason="its bus is inside its own process; start it with 'make run BUS=rabbit'"
                       + ("" if options.command == "listen" else
                          ", or read its database with --local"))
    name = "event_stream" if options.command in client_parser.OF_EVENTS else "calls"
    return importlib.import_module(f"placement_rpc.cmd.{name}").run(options, conf, url)


@errors.one_line_errors("placement-rpc")
def main(args=None):
    options = client_parser.parser().parse_args(args)
    if options.command == "completion":
        print(importlib.import_module("placement_rpc.cmd.completion").script(options.shell),
              end="")
        return 0
    conf = importlib.import_module("placement_rpc.conf").new_config(
        config_sources.arguments(options))
    if options.state_dir:
        config_sources.override(conf, "state_dir", options.state_dir, "standalone")
    if options.command == "standalone":
        return errors.service_module("standalone").run(options, conf)
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
