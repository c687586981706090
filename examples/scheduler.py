#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A scheduler: finds room for servers and claims it, over RabbitMQ.

place    finds and claims in one call for each server. The service offers concurrent callers
         different candidates, and tries one after the other until the store accepts one.
weigh    does it in two calls, for a scheduler that prefers some candidates to others: it fetches
         candidates, and claims them in the order of their weights until one is accepted.
delete   gives back what servers hold by casts, which are done even if the service is away now.

A call that gets no answer in time is repeated under the same request id, so that a server is
placed once, whatever happened to the first attempt.
"""

import argparse
import concurrent.futures
import json
import sys
import time
import uuid

from placement_rpc import exception
from placement_rpc.api import (
    CandidateGroup,
    CandidatesRequest,
    Claim,
    PlacementAPI,
    new_request_id,
)

# A host that is disabled gets no new servers.
_DISABLED = "COMPUTE_STATUS_DISABLED"
# The maximum number of candidates that are fetched to be weighed.
_CANDIDATES = 100


class Scheduler:
    """Places servers.

    :param api: :class:`placement_rpc.api.PlacementAPI`
    :param patience: seconds after which a server is given up that gets no answer
    """

    def __init__(self, api, patience=60.0):
        self._api, self._patience = api, patience

    def place(self, server, wanted):
        """Find room for a server and claim it in one call.

        :param server: dict of ``uuid``, ``project_id`` and ``user_id``
        :param wanted: :class:`placement_rpc.api.CandidatesRequest`
        :returns: dict of provider uuid to dict of class to amount
        :raises NoCandidates: if no host has room
        :raises ConsumerConflict: if the server has allocations already
        :raises DeadlineExceeded: if there was no answer; the outcome is unknown
        """
        result = self._until_answered(lambda request_id: self._api.claim_by_request(
            None, wanted, self._claim(server), request_id=request_id))
        return result.allocations

    def weigh(self, server, wanted, weight):
        """Claim the best candidate that the store accepts.

        :param weight: function of a candidate's allocations, a dict of provider uuid to dict of
            class to amount, and of the free amounts in the same form; the highest is tried first
        :returns: as :meth:`place`
        :raises NoCandidates: if none is left
        """
        found = self._until_answered(lambda _: self._api.get_allocation_candidates(
            None, wanted, microversion="1.39"))
        free = {provider: {name: values["capacity"] - values["used"]
                           for name, values in summary["resources"].items()}
                for provider, summary in found.provider_summaries.items()}
        candidates = [({provider: values["resources"]
                        for provider, values in each["allocations"].items()}, each["mappings"])
                      for each in found.allocation_requests]
        for allocations, mappings in sorted(
                candidates, key=lambda each: weight(each[0], free), reverse=True):
            claim = self._claim(server, allocations=allocations, mappings=mappings)
            try:
                self._until_answered(lambda request_id, claim=claim: self._api.claim_allocations(
                    None, claim, request_id=request_id))
            except (exception.ClaimRefused, exception.ProviderNotFound):
                # Another scheduler was faster, or the host is gone: the next candidate.
                continue
            return allocations
        raise exception.NoCandidates(resources=wanted.text)

    def delete(self, server):
        """Give back what a server holds; return the id to ask for the outcome with.

        :param server: uuid
        """
        return self._api.release_allocations(None, server, cast=True)

    def why(self, wanted):
        """Return which rule excludes the hosts: a list of str, one for each rule that does."""
        funnel = self._api.explain(None, wanted, limit=1, funnel=True).funnel or []
        return [f"{step['trees']} hosts are left by {step['rule']} "
                f"{step['resource_class'] or step['detail'] or ''}".rstrip() for step in funnel]

    @staticmethod
    def _claim(server, **values):
        # Generation 0: the server has no allocations yet.
        return Claim(consumer_uuid=server["uuid"], project_id=server["project_id"],
                     user_id=server["user_id"], consumer_generation=0, consumer_type="INSTANCE",
                     **values)

    def _until_answered(self, call):
        """Make a call, and repeat it under its request id while it gets no answer.

        PlacementAPI does so too, until the call's own deadline; a scheduler may wait longer.
        """
        request_id, ends = new_request_id(), time.monotonic() + self._patience
        while True:
            try:
                return call(request_id)
            except exception.PlacementException as error:
                if not error.retryable or time.monotonic() > ends:
                    raise


def pack(allocations, free):
    """Prefer hosts that have the least left: others stay free for large servers."""
    return -spread(allocations, free)


def spread(allocations, free):
    """Prefer hosts that have the most left: servers disturb each other the least."""
    return sum(free[provider][name] / amount for provider, amounts in allocations.items()
               for name, amount in amounts.items())


def request_of(options):
    """Return what the servers need, :class:`placement_rpc.api.CandidatesRequest`."""
    groups = [CandidateGroup(
        resources=options.resources, required=[[trait] for trait in options.required],
        member_of=[[aggregate] for aggregate in options.aggregate])]
    groups += [CandidateGroup(suffix=f"_DEVICE{number}", resources=resources,
                              required=[[trait] for trait in traits])
               for number, (resources, traits) in enumerate(options.device, 1)]
    return CandidatesRequest(
        groups=groups, group_policy="none", root_forbidden=[_DISABLED],
        limit=_CANDIDATES if options.command == "weigh" else None)


def amounts(text):
    """Return amounts by class.

    :param text: as ``VCPU=2,MEMORY_MB=4096``
    """
    found = {}
    for each in text.split(","):
        name, _, amount = each.partition("=")
        if not (name and amount.isdecimal()):
            raise argparse.ArgumentTypeError(f"{each!r} is not a class and an amount, as VCPU=2")
        found[name] = int(amount)
    return found


def device(text):
    """Return the amounts of a device and its traits.

    :param text: as ``VGPU=1:CUSTOM_A100``
    """
    resources, _, traits = text.partition(":")
    return amounts(resources), [each for each in traits.split(",") if each]


def _parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport-url", metavar="URL",
                        help="the bus, as rabbit://user:password@host:port/ (default: as "
                             "configured in /etc/placement-rpc/placement-rpc.conf)")
    parser.add_argument("--format", choices=("auto", "text", "json"), default="auto",
                        help="auto is text on a terminal and lines of JSON elsewhere")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (("place", "find and claim in one call"),
                       ("weigh", "fetch candidates, and claim the best one")):
        command = commands.add_parser(name, help=text, description=text.capitalize())
        command.add_argument("--resources", type=amounts, metavar="CLASS=AMOUNT,...",
                             default="VCPU=2,MEMORY_MB=4096,DISK_GB=20",
                             help="what a server needs (default: %(default)s)")
        command.add_argument("--device", type=device, action="append", default=[],
                             metavar="CLASS=AMOUNT[:TRAIT,...]",
                             help="what one device must have, such as VGPU=1:CUSTOM_A100; may be "
                                  "given several times")
        command.add_argument("--required", action="append", default=[], metavar="TRAIT",
                             help="a trait of the host; may be given several times")
        command.add_argument("--aggregate", action="append", default=[], metavar="UUID",
                             help="an aggregate of the host; may be given several times")
        command.add_argument("--count", type=int, default=1, metavar="N",
                             help="how many servers to place (default: 1)")
        command.add_argument("--at-once", type=int, default=4, metavar="N",
                             help="how many to place at a time (default: 4)")
        command.add_argument("--project", default="project", help="(default: %(default)s)")
        command.add_argument("--user", default="user", help="(default: %(default)s)")
        if name == "weigh":
            command.add_argument("--by", choices=("pack", "spread"), default="pack",
                                 help="fill hosts one after the other, or evenly (default: pack)")
    command = commands.add_parser("delete", help="give back what servers hold, by casts",
                                  description="Give back what servers hold, by casts")
    command.add_argument("server", nargs="+", metavar="UUID")
    return parser


def place_all(scheduler, options):
    """Place servers, several at a time; return how many found no room."""
    wanted = request_of(options)
    weight = {"pack": pack, "spread": spread}.get(getattr(options, "by", None))

    def place_one(_):
        server = {"uuid": str(uuid.uuid4()), "project_id": options.project,
                  "user_id": options.user}
        try:
            found = (scheduler.weigh(server, wanted, weight) if weight
                     else scheduler.place(server, wanted))
        except exception.NoCandidates as error:
            return {"server": server["uuid"], "error": str(error)}
        return {"server": server["uuid"], "allocations": found}

    homeless = 0
    with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
        for placed in pool.map(place_one, range(options.count)):
            homeless += "error" in placed
            show(placed, options.format)
    if homeless:
        print(f"scheduler: {homeless} of {options.count} servers found no room:",
              *scheduler.why(wanted), sep="\n  ", file=sys.stderr)
    return homeless


def show(row, style):
    """Print a row: text on a terminal, a line of JSON elsewhere."""
    if style == "json" or (style == "auto" and not sys.stdout.isatty()):
        print(json.dumps(row), flush=True)
        return
    detail = row.get("error") or row.get("request") or "; ".join(
        f"{provider}: " + ", ".join(f"{name} {amount}" for name, amount in sorted(held.items()))
        for provider, held in row["allocations"].items())
    print(row["server"], detail, flush=True)


def main():
    options = _parser().parse_args()
    try:
        with PlacementAPI(transport_url=options.transport_url) as api:
            scheduler = Scheduler(api)
            if options.command != "delete":
                return 1 if place_all(scheduler, options) else 0
            for server in options.server:
                show({"server": server, "request": scheduler.delete(server)}, options.format)
            return 0
    except KeyboardInterrupt:
        return 130
    except (exception.PlacementException, ValueError) as error:
        print(f"scheduler: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
