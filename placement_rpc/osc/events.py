# SPDX-License-Identifier: Apache-2.0
"""``event list`` and ``event watch``."""

import argparse
import json
import time

from keystoneauth1 import exceptions as connection_errors
from osc_lib.command import command

from placement_rpc.osc import arguments, client, event_reader, event_text, provider_names

_MAX_LISTED = 1000
_WAIT = 30
_LONGEST_PAUSE = 10
_UNAVAILABLE = (502, 503, 504)


def _position(text):
    """Parse a position or ``now``, for argparse."""
    if text != "now" and not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a position nor 'now'")
    return text


class ListEvents(command.Lister):
    """List past events, the oldest first"""

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--after", type=_position, metavar="POSITION",
                            help="begin after this position (default: with the oldest event "
                                 "that is kept)")
        parser.add_argument("--limit", type=arguments.positive, default=_MAX_LISTED,
                            metavar="N",
                            help=f"show at most N events (default: {_MAX_LISTED})")
        event_reader.add_filters(parser)
        return parser

    def take_action(self, options):
        found = []
        for event in self._events(options):
            if len(found) == options.limit:
                self.log.warning(
                    "There are more events; continue with --after %s", found[-1]["position"])
                break
            found.append(event)
        names = {}
        if options.formatter == "table":
            names = provider_names.of_events(self.app.client_manager.placement_rpc, found)
        # Beside the payloads there is no room for the longest types.
        is_wide = not options.columns or "payload" in options.columns
        event_type = event_text.EventType if is_wide else str
        return ("position", "occurred_at", "event_type", "payload"), [
            (event["position"], event_text.Time(event["occurred_at"]),
             event_type(event["event_type"]), event_text.Payload(event, names))
            for event in found]

    def _events(self, options):
        reader = event_reader.Reader(self.app.client_manager.placement_rpc, options.after)
        while page := reader.page():
            yield from (event for event in page if event_reader.wanted(event, options))


class WatchEvents(command.Command):
    """Follow events as they happen, until Ctrl-C.

    The output is a coloured line for each event on a terminal, and a JSON object in each line
    elsewhere. If the service is unavailable for a while, the command retries, and continues from
    the same position.
    """

    def get_parser(self, prog_name):
        parser = super().get_parser(prog_name)
        parser.add_argument("--after", type=_position, default="now", metavar="POSITION",
                            help="begin after this position (default: now)")
        parser.add_argument("--count", type=arguments.positive, metavar="N",
                            help="exit after N events")
        event_reader.add_filters(parser)
        return parser

    def take_action(self, options):
        show = _shower(self.app.stdout)
        left = options.count
        try:
            for event in self._events(options):
                show(event)
                left = left and left - 1
                if left == 0:
                    return
        except KeyboardInterrupt:
            # The usual way to end this command, and so not an error.
            return

    def _events(self, options):
        reader = event_reader.Reader(self.app.client_manager.placement_rpc, options.after)
        # Without waiting, so that an unreachable service is reported at once, and all events from
        # now on are seen.
        page = reader.page(wait=0)
        while True:
            for event in page:
                if event_reader.wanted(event, options):
                    yield event
            page = self._next_page(reader)

    def _next_page(self, reader):
        pause = 1
        while True:
            try:
                return reader.page(wait=_WAIT)
            except connection_errors.ConnectionError as error:
                reason = error
            except client.Refused as refused:
                if refused.status not in _UNAVAILABLE:
                    raise
                reason = refused
            self.log.warning("%s; trying again in %s s", reason, pause)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _shower(stream):
    """Return a callable that prints an event to a stream."""
    if stream.isatty():
        return event_text.Lines(stream)

    def show(event):
        print(json.dumps(event), file=stream, flush=True)

    return show
