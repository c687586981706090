# SPDX-License-Identifier: Apache-2.0
"""A Placement service, or one that takes its place, of which read requests are asked."""

import threading
import time
import urllib.parse
from typing import Protocol

import requests

import placement_rpc
from placement_rpc.moving.access_log import Request
from placement_rpc.moving.answers import Answer

_UNAUTHENTICATED = 401
# After so many requests in a row without an answer, a service is not asked any more.
_PATIENCE = 10
_VERSION = "OpenStack-API-Version"


class NoService(ConnectionError):
    """There is no Placement service at an address, or it stopped answering."""


class Unauthenticated(PermissionError):
    """A service refuses the token."""


class Credentials(Protocol):
    """What identifies the caller.

    :ivar verify: bool, or str, the path of a file of certificates, as requests takes it
    :ivar cert: str, the path of a client's certificate, tuple of the paths of it and its key, or
        None
    """

    verify: bool | str
    cert: str | tuple[str, str] | None

    def headers(self) -> dict[str, str]:
        """Return the headers of a request."""

    def renew(self) -> None:
        """Forget a token that was refused, so that the next headers have a new one."""


class Pace:
    """A limit on the rate of requests.

    :param rate: float, requests per second; 0 for no limit
    :param stopped: :class:`threading.Event`; after it is set, nothing waits any more
    """

    def __init__(self, rate: float, stopped: threading.Event) -> None:
        self._pause = 1 / rate if rate else 0.0
        self._stopped = stopped
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self) -> None:
        """Wait until the next request may be sent."""
        with self._lock:
            now = time.monotonic()
            turn = max(self._next, now)
            self._next = turn + self._pause
        if turn > now:
            self._stopped.wait(turn - now)


class PlacementService:
    """A service; several threads may use it.

    :ivar name: str, its address without user and password
    :param url: str, its address
    :param credentials: :class:`Credentials`
    :param pace: :class:`Pace` of its requests
    :param timeout: float, seconds for which a request waits for the service
    :raises ValueError: if the address is none of a service
    """

    def __init__(self, url: str, credentials: Credentials, pace: Pace, timeout: float) -> None:
        parts = address_parts(url)
        self._url = url.rstrip("/")
        self._base = parts.path.rstrip("/")
        self.name = _without_password(parts)
        self._credentials = credentials
        self._pace = pace
        self._timeout = timeout
        self._local = threading.local()
        self._unanswered = 0

    def ask(self, request: Request) -> Answer:
        """Send a read request.

        :raises NoService: if the service has not answered for a number of requests in a row
        :raises Unauthenticated: if it refuses the credentials
        """
        answer = self._send(request)
        if answer.status == _UNAUTHENTICATED:
            self._credentials.renew()
            answer = self._send(request)
            if answer.status == _UNAUTHENTICATED:
                raise Unauthenticated(
                    f"{self.name} refuses the credentials (401): check the variables OS_*, or the "
                    "cloud's entry in clouds.yaml")
        if answer.status is None:
            self._unanswered += 1
            if self._unanswered >= _PATIENCE:
                raise NoService(f"{self.name} has not answered {self._unanswered} requests in a "
                                f"row: {answer.failure}")
        else:
            self._unanswered = 0
        return answer

    def newest_microversion(self) -> tuple[int, int]:
        """Return the newest microversion that the service has.

        :raises NoService: if it is no Placement service, or does not answer
        """
        answer = self._send(Request("/"))
        if answer.status is None:
            raise NoService(f"{self.name} does not answer: {answer.failure}")
        body = answer.body()
        try:
            major, _, minor = body["versions"][0]["max_version"].partition(".")
            return int(major), int(minor)
        except (LookupError, TypeError, AttributeError, ValueError):
            raise NoService(f"{self.name} answers {answer.status} without the versions of a "
                            "Placement service: check the address") from None

    def _send(self, request: Request) -> Answer:
        headers = {"Accept": "application/json", **self._credentials.headers()}
        if request.microversion:
            headers[_VERSION] = f"placement {request.microversion}"
        self._pace.wait()
        began = time.perf_counter()
        try:
            # Redirections are not followed: they could lead the token to another host.
            answer = self._session().get(
                self._url + request.target, headers=headers, timeout=self._timeout,
                allow_redirects=False)
        except requests.RequestException as error:
            return Answer(None, failure=_reason(error), seconds=time.perf_counter() - began)
        seconds = time.perf_counter() - began
        return Answer(answer.status_code, {
            name.lower(): value for name, value in answer.headers.items()},
            answer.content, seconds, base=self._base)

    def _session(self) -> requests.Session:
        """Return the session of this thread, whose connection stays open."""
        session = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = requests.Session()
            session.headers["User-Agent"] = (
                f"placement-rpc-manage/{placement_rpc.__version__} shadow")
            session.verify, session.cert = self._credentials.verify, self._credentials.cert
        return session


def address_parts(url: str) -> urllib.parse.SplitResult:
    """Return the parts of an address.

    :raises ValueError: if it is none of a service; the text has no user and password, which the
        errors of the libraries may have
    """
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise ValueError(f"{url.rpartition('@')[2]!r} is not the address of a service: it begins with "
                     "http:// or https:// and a host, and may have a port from 1 to 65535")


def _without_password(parts: urllib.parse.SplitResult) -> str:
    return urllib.parse.urlunsplit(parts._replace(
        netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


def _reason(error: requests.RequestException) -> str:
    """Return in a few words why there was no answer; the library's text repeats the address."""
    cause: BaseException | None = error
    reasons = []
    while cause is not None:
        reasons.append(str(getattr(cause, "reason", None) or cause))
        cause = cause.__cause__ or cause.__context__
    text = " ".join(min(filter(None, reasons), key=len, default="").split())
    return f"{type(error).__name__}: {text[:120]}"
