# SPDX-License-Identifier: Apache-2.0
"""Lists of what nova knows, as its command line clients print them.

A list is JSON, CSV with a line of column names, or plain lines. It is read piece by piece, so that
a list of any length takes the same memory.
"""

import csv
import functools
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TextIO

from placement_rpc import exception
from placement_rpc.objects import fields

# Characters that are read at a time, and the most that one JSON value may have.
_CHUNK = 1 << 16
_LONGEST = 1 << 26
_SPACE = re.compile(r"[\s,]*")
_NOTHING = frozenset(("", "-", "none", "null", "n/a"))
# The keys of the list in a document that the compute API answered.
_LISTS = ("servers", "migrations", "services", "hypervisors")
# Names of columns and of fields, in lower case without blanks, hyphens and underscores.
_UUID = ("id", "uuid", "serverid", "serveruuid", "instanceuuid")
# The client's column "Host" is the name of the hypervisor. The compute API answers both.
_HOST = ("osextsrvattr:hypervisorhostname", "hypervisorhostname", "osextsrvattr:host", "host",
         "computehost", "node")
_STATUS, _TASK = ("status",), ("taskstate", "osextsts:taskstate")
_PROJECT = ("projectid", "tenantid", "project")
_MIGRATION, _MIGRATED = ("uuid",), ("serveruuid", "instanceuuid", "serverid")
_NAMES = ("hypervisorhostname", "host", "name")
_BINARY = ("binary",)


class Server(NamedTuple):
    """A server as nova knows it.

    ``host`` is empty if nova says that it is on none, and None if the list does not say it.
    ``status`` and ``task`` are in upper case; None if the list does not have them.
    """

    uuid: str
    host: str | None = None
    status: str | None = None
    task: str | None = None
    project_id: str | None = None


class Migration(NamedTuple):
    """A migration as nova knows it: its own uuid, that of its server, and its status."""

    uuid: str
    server: str
    status: str


def servers(file: TextIO, name: str) -> Iterator[Server]:
    """Return a generator of the servers of a list.

    A plain line is a uuid, and after a blank or a comma the host if it is known.

    :param name: of the list, for errors
    :raises InvalidInput: if it cannot be read
    """
    for label, record in _records(file, name, ("uuid", "host")):
        task = _text(record, _TASK)
        status = _text(record, _STATUS)
        yield Server(
            _uuid(label, _value(record, _UUID)), _text(record, _HOST), status and status.upper(),
            task if task is None else task.upper(), _text(record, _PROJECT) or None)


def migrations(file: TextIO, name: str) -> Iterator[Migration]:
    """Return a generator of the migrations of a list with uuids: JSON or CSV.

    :raises InvalidInput: if it cannot be read
    """
    for label, record in _records(file, name, ()):
        if _value(record, _MIGRATION) is None:
            raise exception.InvalidInput(
                what=label, reason="it has no UUID; the command line client needs "
                                   "--os-compute-api-version 2.59 to list it")
        yield Migration(
            _uuid(label, _value(record, _MIGRATION)), _uuid(label, _value(record, _MIGRATED)),
            (_text(record, _STATUS) or "").lower())


def services(file: TextIO, name: str) -> Iterator[str]:
    """Return a generator of the names of compute services, or of their nodes, in a list.

    It may be a list of services, in which only those of nova-compute count, or of hypervisors,
    whose uuids count too. A plain line is one name.

    :raises InvalidInput: if it cannot be read
    """
    for label, record in _records(file, name, ("host",)):
        if (_text(record, _BINARY) or "nova-compute") != "nova-compute":
            continue
        named = {_text(record, (key,)) or "" for key in (*_NAMES, *_UUID)}
        named = {each for each in named if each and not each.isdigit()}
        if not named:
            raise exception.InvalidInput(what=label, reason="it has neither a host nor a name")
        yield from sorted(named)


def _records(file: TextIO, name: str, columns: tuple[str, ...],
             ) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a label and the values of each entry, by normalised names.

    :param columns: of plain lines; empty if they are not accepted
    """
    try:
        first = file.read(_CHUNK)
        while first and not first.strip():
            first = file.read(_CHUNK)
        if not first.strip():
            raise exception.InvalidInput(
                what=name, reason="it is empty; an empty list is [] in JSON")
        rest = _Rest(first.lstrip("\ufeff"), file)
        if first.lstrip()[0] in "[{":
            yield from _of_json(rest, name, columns)
        else:
            yield from _of_lines(rest, name, columns)
    except exception.InvalidInput:
        raise
    except UnicodeDecodeError as error:
        raise exception.InvalidInput(what=name, reason=f"it is not UTF-8: {error}") from None
    except (csv.Error, RecursionError, ValueError) as error:
        # A value that is too long, too deep, or a number of too many digits.
        raise exception.InvalidInput(what=name, reason=str(error)) from None


class _Rest:
    """A text whose beginning was read already."""

    def __init__(self, first: str, file: TextIO):
        self._first, self._file = first, file

    def read(self, size: int) -> str:
        """Return some characters, no more than the size unless they were read already."""
        first, self._first = self._first, ""
        return first or self._file.read(size)

    def readline(self) -> str:
        """Return the next line; an empty text at the end."""
        line, end, self._first = self._first.partition("\n")
        return line + end if end else line + self._file.readline()


def _of_json(rest: _Rest, name: str, columns: tuple[str, ...],
             ) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, value in enumerate(_json_values(rest, name), 1):
        label = f"{name}, entry {number}"
        found = next((value[key] for key in _LISTS if isinstance(value, dict)
                      and isinstance(value.get(key), list)), [value])
        for each in found:
            if isinstance(each, str) and columns:
                each = {columns[0]: each}
            if not isinstance(each, dict):
                raise exception.InvalidInput(what=label, reason="it is not an object")
            yield label, {_normal(key): item for key, item in each.items()}


def _json_values(rest: _Rest, name: str) -> Iterator[Any]:
    """Yield the values of arrays, and single values, that follow each other in a text."""
    decoder, text, place, size = json.JSONDecoder(), "", 0, _CHUNK
    is_array = done = False
    while True:
        match = _SPACE.match(text, place)
        place = match.end() if match else place
        bracket = "]" if is_array else "["
        if text.startswith(bracket, place):
            is_array, place = not is_array, place + 1
            continue
        if place == len(text) and done and not is_array:
            return
        try:
            value, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError as error:
            if done or len(text) - place > _LONGEST:
                raise exception.InvalidInput(
                    what=name, reason=f"it is not valid JSON: {error.msg}" if place < len(text)
                    else "it ends in the middle of an array") from None
            # Larger each time, so that a long value is not decoded again too often.
            more, size = rest.read(size), size * 2
            text, place, done = text[place:] + more, 0, not more
            continue
        yield value
        place, size = end, _CHUNK


def _of_lines(rest: _Rest, name: str, columns: tuple[str, ...],
              ) -> Iterator[tuple[str, Mapping[str, Any]]]:
    first = rest.readline()
    names = [_normal(each) for each in next(csv.reader([first]), [])]
    lines = itertools.chain([first], iter(rest.readline, ""))
    if len(set(names) & {*_UUID, *_NAMES, *_STATUS, *_BINARY}) > 0 and not _is_uuid(first):
        reader = csv.reader(lines)
        next(reader)
        for row in reader:
            if row:
                yield f"{name}, line {reader.line_num}", dict(zip(names, row, strict=False))
        return
    for number, line in enumerate(lines, 1):
        values = line.partition("#")[0].replace(",", " ").split()
        if len(values) > len(columns):
            raise exception.InvalidInput(
                what=f"{name}, line {number}",
                reason=f"a plain line has {' and '.join(columns)} only; give JSON or CSV with "
                       "column names for more" if columns else "give JSON, or CSV with column "
                       "names")
        if values:
            yield f"{name}, line {number}", dict(zip(columns, values, strict=False))


@functools.lru_cache(1024)
def _normal(key: str) -> str:
    return re.sub(r"[\s_-]", "", key).lower()


def _is_uuid(line: str) -> bool:
    try:
        _uuid("", line.replace(",", " ").split()[0].strip('"'))
    except (exception.InvalidInput, IndexError):
        return False
    return True


def _value(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _text(record: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return a text of a record: empty for nothing, and None if it has none of the names."""
    if not any(name in record for name in names):
        return None
    text = str(_value(record, names) or "").strip()
    return "" if text.lower() in _NOTHING else text


def _uuid(label: str, value: Any) -> str:
    text = value.strip() if isinstance(value, str) else value
    try:
        return fields.Uuid().coerce(None, "uuid", text)
    except exception.InvalidInput as error:
        raise exception.InvalidInput(what=label, reason=error.kwargs["reason"]) from None
