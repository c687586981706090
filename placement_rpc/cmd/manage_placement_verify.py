# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement verify``: compare every row of Placement's store and this one.
"""

import argparse
import time

from placement_rpc.cmd import moving_output, placement_url
from placement_rpc.moving import fitting, hold, verification
from placement_rpc.spool import Spool

_COLUMNS = ["kind", "placement", "store", "different", "younger"]
_WAIT = 1.0
_LONGEST_WAIT = 3600
_LIMIT = 50
_DESCRIPTION = """\
Compare every row of a database of OpenStack Placement with the store, and print the differences.
Nothing is changed, and both may be in use meanwhile: what differs is read again after a moment.

A difference is called younger if it comes of use: a row has changed while it was compared, or
since the last import, or was deleted since. The next import brings what is younger in Placement.
Run it after the last import, with Placement stopped: then there must be no difference at all.

Exits with 0 if there are no differences, 1 if there are any, 2 for wrong arguments."""


def add_command(commands):
    """Add ``verify`` to the group.

    :param commands: what ``add_subparsers`` of the group returned
    """
    command = commands.add_parser(
        "verify", help="compare every row of Placement's database with the store",
        description=_DESCRIPTION, formatter_class=placement_url.Formatter)
    placement_url.add_arguments(command, "from", "Placement's database")
    command.add_argument("--allow-younger", action="store_true",
                         help="exit with 0 if all differences are younger")
    command.add_argument("--wait", type=_seconds, default=_WAIT, metavar="SECONDS",
                         help="how long to wait before what differs is read again (default: "
                              "%(default)s); more tells more of the rows that change all the time")
    command.add_argument("--limit", type=_whole_number, default=None, metavar="N",
                         help="how many differences of each kind to print; all are counted "
                              f"(default: {_LIMIT} in a table, all in JSON)")
    command.add_argument("--format", choices=("auto", "table", "json"), default="auto",
                         help="default: a table on a terminal, JSON elsewhere")
    command.set_defaults(run=_run)


def _seconds(text):
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number <= _LONGEST_WAIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_LONGEST_WAIT}")
    return number


def _whole_number(text):
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _run(database, options, _conf):
    address, style = placement_url.address_of(options, "from"), moving_output.style_of(
        options.format)
    limit = options.limit if options.limit is not None or style == "json" else _LIMIT
    work = verification.Verification(
        address.store, lambda: fitting.opened(database, address.url), hold.in_use_since(database),
        lambda: time.sleep(options.wait))
    with moving_output.Findings(style) as findings, Spool() as kept:
        with moving_output.progress(address.sizes) as advance:
            left_out = _keep(work.run(findings.add, advance), kept, limit)
        counts = work.counts
        findings.show([{"kind": kind, **each._asdict()} for kind, each in counts.items()],
                      _COLUMNS, differences=kept)
        if style == "table":
            _print(kept, left_out, counts)
    failing = sum(each.different + (0 if options.allow_younger else each.younger)
                  for each in counts.values())
    return 1 if failing else 0


def _keep(found, kept, limit):
    """Keep the differences to print.

    :returns: dict of kind to the number of those that are left out
    """
    numbers, left_out = {}, {}
    for each in found:
        kind = each.difference.kind
        numbers[kind] = numbers.get(kind, 0) + 1
        if limit is not None and numbers[kind] > limit:
            left_out[kind] = left_out.get(kind, 0) + 1
        else:
            kept.append(_described(each))
    return left_out


def _described(verified):
    """Return a difference as a dict: of a changed row, the values that differ."""
    kind, key, source, target = verified.difference
    names = (source or target)._fields[len(key):-2]
    values = [dict(zip(names, row.values, strict=True)) if row else None
              for row in (source, target)]
    if None not in values:
        same = [name for name in names if values[0][name] == values[1][name]]
        values = [{name: value for name, value in each.items() if name not in same}
                  for each in values]
    return {"kind": kind, "key": "/".join(key), "placement": values[0], "store": values[1],
            "younger": verified.younger}


def _print(kept, left_out, counts):
    for each in kept:
        younger = f" (younger: {each['younger']})" if each["younger"] else ""
        print(f"{each['kind']} {each['key']}: {_sides(each)}{younger}")
    for kind, number in left_out.items():
        print(f"{kind}: {number} more; --limit prints them")
    if not any(each.different or each.younger for each in counts.values()):
        print("Both stores hold the same")


def _sides(each):
    placement, store = each["placement"], each["store"]
    if placement is None or store is None:
        where, values = ("here", store) if placement is None else ("in Placement", placement)
        text = ", ".join(f"{name} {value}" for name, value in values.items())
        return f"only {where}" + (f": {text}" if text else "")
    return "; ".join(f"{name} {value} in Placement, {store[name]} here"
                     for name, value in placement.items())
