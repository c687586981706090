# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage placement verify``: compare every row of Placement's store and this one.
"""

import time

from placement_rpc.cmd import moving_output, output, placement_url
from placement_rpc.cmd.parsers import placement_verify
from placement_rpc.moving import fitting, hold, verification
from placement_rpc.spool import Spool

_COLUMNS = ["kind", "placement", "store", "different", "younger"]


def run(database, options, _conf):
    address, style = placement_url.address_of(options, "from"), output.style_of(
        options.format)
    limit = placement_verify.LIMIT if options.limit is None and style == "table" else options.limit
    work = verification.Verification(
        address.store, lambda: fitting.opened(database, address.url), hold.in_use_since(database),
        lambda: time.sleep(options.wait))
    with moving_output.Findings(style) as findings, Spool() as kept:
        with moving_output.progress(
                address.sizes, "run it again for the whole comparison") as advance:
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
