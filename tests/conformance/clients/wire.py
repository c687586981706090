# SPDX-License-Identifier: Apache-2.0
"""The requests that a client sends: written down, interrupted, lost."""

import contextlib
import re
import socket
from urllib import parse

import requests
from requests import adapters

_VERSION = "openstack-api-version"


class Wire:
    """Lies between a client and a server.

    :param url: str, address of the server
    """

    def __init__(self, url):
        self._url = parse.urlsplit(url)
        self._written = None
        self._interruptions = []

    @contextlib.contextmanager
    def recording(self, requests_sent):
        """Append a dict to a list for each request."""
        self._written = requests_sent
        try:
            yield
        finally:
            self._written = None

    def attach(self, session):
        """Have a :class:`requests.Session` send its requests through this."""
        session.mount("http://", _Adapter(self))
        # What the user of nova has in a cloud; only services may reshape.
        session.headers["x-roles"] = "admin,service"
        return session

    def meanwhile(self, method, path, function, times=1):
        """Call a function just before a request is sent.

        :param path: regular expression that is looked for in path and query
        :param times: how many such requests are interrupted
        """
        self._interruptions.append([method, re.compile(path), times, function])

    @contextlib.contextmanager
    def refused(self):
        """Refuse all connections, as the address of a program that does not run does."""
        with socket.socket() as nobody:
            # Bound, and nothing listens: no other program can take the port.
            nobody.bind(("127.0.0.1", 0))
            port, self._port = self._port, nobody.getsockname()[1]
            try:
                yield
            finally:
                self._port = port

    _port = None
    _lost = 0

    def lose_answer(self, method, path):
        """Drop the answer to one request that the server has carried out."""
        def lose():
            self._lost += 1
        self.meanwhile(method, path, lose)

    def send(self, send, request, options):
        """Send a request; for :class:`_Adapter`."""
        found = parse.urlsplit(request.url)
        path = found.path + (f"?{found.query}" if found.query else "")
        self._interrupt(request.method, path)
        if self._port is not None:
            request.url = found._replace(netloc=f"127.0.0.1:{self._port}").geturl()
        written = {"request": f"{request.method} {_ordered(path)}",
                   "version": request.headers.get(_VERSION, "none")}
        if self._written is not None:
            self._written.append(written)
        try:
            answer = send(request, **options)
            if self._lost:
                self._lost -= 1
                raise requests.ConnectionError("The answer is lost")
        except requests.RequestException as error:
            written["failed"] = type(error).__name__
            raise
        written.update(_described(answer))
        return answer

    def _interrupt(self, method, path):
        for each in list(self._interruptions):
            its_method, its_path, times, function = each
            if method == its_method and its_path.search(path):
                each[2] -= 1
                if times == 1:
                    self._interruptions.remove(each)
                function()


class _Adapter(adapters.HTTPAdapter):

    def __init__(self, wire):
        super().__init__()
        self._wire = wire

    def send(self, request, **options):
        return self._wire.send(super().send, request, options)


def _ordered(path):
    """Return a path whose query is in order; clients write sets of names into it."""
    path, mark, query = path.partition("?")
    parts = sorted(
        f"{name}={','.join(sorted(value.removeprefix('in:').split(',')))}"
        for name, value in parse.parse_qsl(query, keep_blank_values=True))
    return path + mark + "&".join(parts)


def _described(answer):
    """Return what is written down of an answer: dict."""
    found = {"status": answer.status_code, "answered version": answer.headers.get(_VERSION)}
    if answer.content:
        # Whatever is no JSON is an error of the server: no client here can read it either.
        found["body"] = answer.json()
    if answer.status_code >= 400 and "body" in found:
        errors = found.pop("body")["errors"]
        found["codes"] = [error.get("code") for error in errors]
        found["titles"] = [error["title"] for error in errors]
        found["details"] = [error["detail"] for error in errors]
    return found
