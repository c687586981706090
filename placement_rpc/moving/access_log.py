# SPDX-License-Identifier: Apache-2.0
"""Read requests in the access log of a Placement service.

These formats are read, also mixed and with other lines between them:

* common and combined, as Apache, nginx, gunicorn and HAProxy write them
  (``"GET /placement/usages?... HTTP/1.1" 200``), with any fields before and after;
* uWSGI's own (``GET /usages?... => generated 64 bytes in 3 msecs (HTTP/1.1 200)``);
* Placement's request log (``"GET /usages?..." status: 200 len: 64 microversion: 1.38``);
* lines of JSON that contain one of these as text, or the method and the address as fields;
* plain lines: ``GET /usages?...``, and optionally a microversion after it.
"""

import collections
import contextlib
import gzip
import json
import re
import urllib.parse
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

_GZIP = b"\x1f\x8b"
# Bytes; Placement's longest requests have some ten thousand.
_LONGEST_LINE = 1 << 18

_METHODS = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS"
_MICROVERSION = r"\d{1,9}\.\d{1,9}|latest"
_QUOTED = re.compile(
    rf'(?<!\\)"(?P<method>{_METHODS}) (?P<target>(?:/|https?://)(?:[^"\\]|\\.)*?)'
    r'(?P<http> HTTP/\d(?:\.\d)?)?"(?P<rest>.*)', re.DOTALL | re.ASCII)
_UWSGI = re.compile(
    rf"(?:^|\s)(?P<method>{_METHODS}) (?P<target>/\S*) => generated .{{0,200}}?"
    r"\(HTTP/\d(?:\.\d)? (?P<status>\d{3})\)(?P<rest>.*)", re.DOTALL | re.ASCII)
_PLAIN = re.compile(
    rf"\s*(?P<method>{_METHODS}) (?P<target>(?:/|https?://)\S*)"
    rf"(?: HTTP/\d(?:\.\d)?)?(?: (?P<version>{_MICROVERSION}))?\s*", re.ASCII)
# The end of the line is missing, so it is not known what was asked.
_CUT_OFF = re.compile(rf'"(?:{_METHODS}) (?:/|https?://)[^"]*$', re.DOTALL)
_REQUEST_LOG = " status: "
_STATUS = re.compile(r" (\d{3})(?: |$)", re.ASCII)
_VERSION = re.compile(rf"(?:\bmicroversion: |\bplacement )({_MICROVERSION})\b", re.ASCII)
# Placement's request log has such a line in debug mode, and later the one with the answer.
_BEGINNING = "Starting request: "
_PRINTABLE = "".join(map(chr, range(0x21, 0x7f)))
_ESCAPED = re.compile(r'\\x([0-9a-fA-F]{2})|\\(["\\])')
_JSON_TEXTS = ("request", "message", "log", "msg", "line")
_JSON_METHODS = ("method", "request_method", "http_method")
_JSON_TARGETS = ("request_uri", "uri", "path", "target", "url")
_JSON_QUERIES = ("query_string", "query", "args")
_JSON_STATUSES = ("status", "status_code", "response_status")
_JSON_VERSIONS = ("microversion", "openstack_api_version", "openstack-api-version")

_NAMED = r"[^/]+"
_ADDRESSES = re.compile(
    rf"/(?:resource_providers(?:/(?P<provider>{_NAMED})"
    rf"(?:/(?:inventories(?:/(?P<inventory>{_NAMED}))?|usages|aggregates|traits|allocations))?)?"
    rf"|allocation_candidates|allocations/(?P<consumer>{_NAMED})|usages"
    rf"|resource_classes(?:/(?P<class>{_NAMED}))?|traits(?:/(?P<trait>{_NAMED}))?)")
#: Under which Placement usually is if it shares a server with other services.
USUAL_PREFIX = "/placement"


class Request(NamedTuple):
    """A read request.

    :ivar target: str, path and query below the service's own address
    :ivar microversion: str, like ``1.36`` or ``latest``; None if the log does not say it
    """

    target: str
    microversion: str | None = None

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def kind(self) -> str:
        """The path, with names of fields in the place of names and uuids."""
        found = _ADDRESSES.fullmatch(self.path)
        text = self.path
        for name, (begin, end) in sorted(
                ((name, found.span(name)) for name, value in found.groupdict().items() if value),
                key=lambda each: each[1], reverse=True) if found else ():
            text = f"{text[:begin]}{{{name}}}{text[end:]}"
        return text


class _Line(NamedTuple):
    """What one line says: ``target`` is path and query; ``status`` and ``version`` may be None."""

    method: str
    target: str
    version: str | None = None
    status: int | None = None


class Logged(NamedTuple):
    """A read request of the log, and the status of the answer that was logged, an int or None."""

    request: Request
    status: int | None


class AccessLog:
    """The requests of log files, and counts of the lines that have none.

    :param prefixes: paths below which the log has Placement's addresses, in addition to none and
        ``/placement``
    :ivar lines: int, lines read
    :ivar reads: int, read requests to Placement's addresses
    :ivar others: :class:`collections.Counter` of the other methods to Placement's addresses
    :ivar foreign: int, requests to other addresses
    :ivar cut_off: int, requests whose end is missing
    :ivar without_request: int, lines in which no request was found
    """

    def __init__(self, prefixes: Iterable[str] = ()) -> None:
        self._prefixes = sorted(
            {"", USUAL_PREFIX, *(prefix.rstrip("/") for prefix in prefixes)}, key=len)
        self.lines = self.reads = self.foreign = self.cut_off = self.without_request = 0
        self.others: collections.Counter[str] = collections.Counter()

    def read(self, file: BinaryIO) -> Iterator[Logged]:
        """Yield the read requests of a file, one for each line that has one.

        :param file: binary file, which may be compressed with gzip
        :raises OSError: if it cannot be read, or its compressed contents are damaged
        """
        try:
            for line in _lines(file):
                self.lines += 1
                found = self._read_line(line)
                if found is not None:
                    self.reads += 1
                    yield found
        except (EOFError, zlib.error) as error:
            raise OSError(f"after {self.lines} lines: {error}") from error

    def _read_line(self, line: bytes | None) -> Logged | None:
        parsed = None if line is None else _parse(line.decode("utf-8", "replace"))
        if parsed is None:
            self.without_request += 1
        elif not parsed.method:
            self.cut_off += 1
        else:
            target = self._below_prefix(parsed.target)
            if target is None:
                self.foreign += 1
            elif parsed.method != "GET":
                self.others[parsed.method] += 1
            else:
                return Logged(Request(target, parsed.version), parsed.status)
        return None

    def _below_prefix(self, target: str) -> str | None:
        """Return path and query of one of Placement's addresses, or None for another one."""
        path, mark, query = target.partition("?")
        for prefix in self._prefixes:
            if path.startswith(prefix) and _ADDRESSES.fullmatch(path, len(prefix)):
                return path[len(prefix):] + mark + query
        return None


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a file; None for one that is too long to have a request."""
    # Standard input cannot be read from its beginning again, but every buffered file has 'peek'.
    is_compressed = file.peek(2)[:2] == _GZIP  # type: ignore[attr-defined]
    with gzip.open(file) if is_compressed else contextlib.nullcontext(file) as contents:
        while line := contents.readline(_LONGEST_LINE):
            whole = line.endswith(b"\n") or len(line) < _LONGEST_LINE
            while not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
                line = contents.readline(_LONGEST_LINE)
            yield line.rstrip(b"\r\n") if whole else None


def _parse(text: str) -> _Line | None:
    """Return what a line says; None if it has no request; a line without method if it is cut off.
    """
    if text.lstrip().startswith("{"):
        return _of_json(text)
    if _BEGINNING in text:
        return None
    found = _QUOTED.search(text)
    if found:
        return _of_quoted(found)
    found = _UWSGI.search(text)
    if found:
        return _Line(found["method"], _address(found["target"]), _version(found["rest"]),
                     int(found["status"]))
    found = _PLAIN.fullmatch(text)
    if found:
        return _Line(found["method"], _address(found["target"]), found["version"])
    return _Line("", "") if _CUT_OFF.search(text) else None


def _of_quoted(found: re.Match[str]) -> _Line:
    target, rest = _ESCAPED.sub(_unescaped, found["target"]), found["rest"]
    if rest.startswith(_REQUEST_LOG):
        # Placement logs the path as the application gets it, without percent signs.
        path, mark, query = target.partition("?")
        target = path.replace("%", "%25").replace("#", "%23") + mark + query
    status = _STATUS.search(rest)
    return _Line(found["method"], _address(target), _version(rest), status and int(status[1]))


def _of_json(text: str) -> _Line | None:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    method, target, query, version = (next(
        (value for name in names if isinstance(value := fields.get(name), str) and value), "")
        for names in (_JSON_METHODS, _JSON_TARGETS, _JSON_QUERIES, _JSON_VERSIONS))
    known = _version(f"placement {version.removeprefix('placement ')}")
    status = next((int(text) for name in _JSON_STATUSES
                   if re.fullmatch("[1-9][0-9]{2}", text := str(fields.get(name)))), None)
    if method and target.startswith(("/", "http")):
        query = f"?{query.removeprefix('?')}" if query and "?" not in target else ""
        return _Line(method, _address(target + query), known, status)
    for name in _JSON_TEXTS:
        value = fields.get(name)
        inner = _parse(value.strip()) if isinstance(value, str) else None
        if inner is not None:
            return inner._replace(version=inner.version or known,
                                  status=inner.status or status)
    return None


def _version(rest: str) -> str | None:
    """Return the microversion that the rest of a line says, or None."""
    found = _VERSION.search(rest)
    return found and found[1]


def _unescaped(found: re.Match[str]) -> str:
    return f"%{found[1]}" if found[1] else found[2]


def _address(target: str) -> str:
    """Return path and query of a target, which may be a whole URL, in printable ASCII."""
    if not target.startswith("/"):
        target = "/" + target.partition("://")[2].partition("/")[2]
    return urllib.parse.quote(
        target.partition("#")[0], safe=_PRINTABLE, errors="replace")
