# SPDX-License-Identifier: Apache-2.0
"""Events as coloured lines of text, and in the cells of a table."""

import datetime
import re
import textwrap

import rich.console
import rich.text
from cliff import columns

from placement_rpc.osc import formatting

_COLOURS = {"create": "green", "associate": "green", "update": "yellow", "delete": "red",
            "disassociate": "red", "refused": "magenta", "capacity_exceeded": "magenta"}
_OTHER = "cyan"
# A field of inventories that is not shown, since allocations have events of their own.
_USED = "used"
_UNPRINTABLE = "\N{REPLACEMENT CHARACTER}"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Characters of two columns of a table that has 100, with a time and a position of ten digits. A
# uuid fits into a summary's.
_TYPE_WIDTH, _SUMMARY_WIDTH = 18, 39


def summary(event_type, payload, names=None):
    """Return a summary of an event in one line.

    A payload of a later release may have another form; its summary is the provider.

    :param event_type: str
    :param payload: dict
    :param names: dict of provider uuid to the name that takes its place
    :returns: str of printable characters
    """
    for of_type, describe in _SUMMARIES.items():
        if event_type.startswith(of_type):
            text = describe(payload)
            break
    else:
        text = None
    text = str(text or payload.get("name") or payload.get("provider_uuid") or "")
    if names:
        text = _UUID.sub(lambda found: names.get(found[0], found[0]), text)
    # Names come from other users, and control characters would act on the terminal.
    return "".join(each if each.isprintable() else _UNPRINTABLE for each in text)


def _refusal(payload):
    return payload.get("error", {}).get("message")


def _allocation(payload):
    if not payload.get("providers"):
        return payload.get("consumer_uuid")
    parts = [f"{each.get('provider_uuid')} {_amounts(each.get('before'))} -> "
             f"{_amounts(each.get('after'))}" for each in payload["providers"]]
    return f"{payload.get('consumer_uuid')} of {payload.get('project_id')}: {'; '.join(parts)}"


def _amounts(amounts):
    return ",".join(f"{name}={amount}" for name, amount in (amounts or {}).items()) or "nothing"


def _over_full(payload):
    return (f"{payload.get('provider_uuid')} {payload.get('resource_class')}: "
            f"{payload.get('used')} used of a capacity of {payload.get('capacity')}")


def _inventory(payload):
    changes = [f"{each.get('resource_class')} {_inventory_change(each)}"
               for each in payload.get("inventories") or ()]
    return f"{payload.get('provider_uuid')} {', '.join(changes)}"


def _inventory_change(each):
    before, after = each.get("before"), each.get("after")
    if not (before and after):
        return " -> ".join(str(side.get("total")) if side else "none" for side in (before, after))
    return " ".join(f"{name} {before.get(name)} -> {value}" for name, value in after.items()
                    if name != _USED and value != before.get(name))


def _aggregates(payload):
    return f"{payload.get('provider_uuid')} {', '.join(payload.get('aggregates') or ())}"


def _name(payload):
    name, before = payload.get("name"), payload.get("previous_name")
    return f"{before} -> {name}" if before and before != name else name


# The first key that is a prefix of the event's type applies.
_SUMMARIES = {"allocation.claim.refused": _refusal, "allocation.": _allocation,
         "inventory.capacity_exceeded": _over_full, "inventory.": _inventory,
         "resource_provider.aggregate.": _aggregates, "resource_provider.": _name,
         "resource_class.": _name}


class Payload(columns.FormattableColumn):
    """A payload in a column of cliff: a summary for a person, the whole for a program.

    :param event: dict
    :param names: as of :func:`summary`
    """

    def __init__(self, event, names):
        super().__init__(event["payload"])
        self._event_type = event["event_type"]
        self._names = names

    def human_readable(self):
        # A uuid is broken only if something longer would be.
        return "\n".join(textwrap.wrap(
            summary(self._event_type, self._value, self._names), _SUMMARY_WIDTH,
            break_on_hyphens=False))

    def machine_readable(self):
        return formatting.Mapping(self._value)


class EventType(columns.FormattableColumn):
    """The type of an event in a column of cliff, which a long one fills in several lines."""

    def human_readable(self):
        parts = textwrap.wrap(self._value.replace(".", ". "), _TYPE_WIDTH)
        return "\n".join(part.replace(". ", ".") for part in parts)


class Time(columns.FormattableColumn):
    """A time in a column of cliff: whole seconds in UTC for a person."""

    def human_readable(self):
        at = datetime.datetime.fromisoformat(self._value).astimezone(datetime.UTC)
        return f"{at:%Y-%m-%dT%H:%M:%SZ}"


class Lines:
    """Print a coloured line for each event.

    :param stream: the terminal
    """

    def __init__(self, stream):
        self._console = rich.console.Console(file=stream)

    def __call__(self, event):
        event_type = event["event_type"]
        at = datetime.datetime.fromisoformat(event["occurred_at"]).astimezone()
        self._console.print(rich.text.Text.assemble(
            f"{event['position']:>10}  {at:%H:%M:%S}  ",
            (f"{event_type:<34}", _COLOURS.get(event_type.rpartition(".")[2], _OTHER)),
            f"  {summary(event_type, event['payload'])}"), soft_wrap=True)
