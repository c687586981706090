# SPDX-License-Identifier: Apache-2.0
"""Requests to the HTTP facade, and its error answers."""

import urllib.parse

from osc_lib import exceptions


class Refused(exceptions.CommandError):
    """The server answered with an error; the text is its reason in one line.

    :ivar status: int, the HTTP status
    :ivar error: dict, the server's error object (guidelines of the API working group on errors);
        empty if it sent none
    """

    def __init__(self, response):
        self.status = response.status_code
        self.error = _error_of(response)
        super().__init__(_one_line(
            self.error.get("detail") or self.error.get("title")
            or f"{response.url} answered {response.status_code} {response.reason}"))


def _error_of(response):
    """Return the first error object of an answer; a proxy's answer has none."""
    try:
        body = response.json()
    except ValueError:
        return {}
    errors = body.get("errors") if isinstance(body, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return first if isinstance(first, dict) else {}


def _one_line(text):
    # The JSON validator appends the whole schema to its reason.
    return " ".join(str(text).partition("Failed validating")[0].split())


def path_of(*parts):
    """Return an address made of parts, which are quoted, with a leading slash."""
    return "/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


class Client:
    """A client of the HTTP API.

    :param adapter: :class:`keystoneauth1.adapter.Adapter` that does not raise for error statuses;
        its microversion is that of requests that need no later one
    :param newest: str, the newest microversion that a request may have; None for the adapter's
    """

    def __init__(self, adapter, newest=None):
        self._adapter = adapter
        self._newest = newest or adapter.default_microversion

    @property
    def microversion(self):
        """tuple of two ints, the newest microversion that a request may have"""
        return _numbers(self._newest)

    def need(self, minor, what):
        """Check that the chosen microversion has a feature.

        :param minor: int, the first minor version that has it
        :param what: str, the feature, in the plural
        :raises osc_lib.exceptions.CommandError: if an older microversion was chosen
        """
        if self.microversion < (1, minor):
            raise exceptions.CommandError(
                f"{what} need --os-placement-rpc-api-version 1.{minor} or later, but "
                f"{self._newest} was chosen")

    def send(self, method, path, body=None, etag=None, query=None, minor=0):
        """Make a request.

        :param method: str, the HTTP method
        :param path: str, the path below the endpoint
        :param body: JSON value; None for a request without a body
        :param etag: str, the value of If-Match; None for an unconditional request
        :param query: dict of query parameters; those that are None are left out
        :param minor: int, the first minor version that has what is asked for; see :meth:`need`
        :returns: :class:`requests.Response` with a status below 400
        :raises Refused: for any other status
        :raises keystoneauth1.exceptions.ClientException: if there is no answer
        """
        given = {"headers": {"Accept": "application/json"}}
        if (1, minor) > _numbers(self._adapter.default_microversion):
            given["microversion"] = f"1.{minor}"
        if etag is not None:
            given["headers"]["If-Match"] = etag
        if body is not None:
            given["json"] = body
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        if parameters:
            given["params"] = parameters
        response = self._adapter.request(path, method, **given)
        if response.status_code >= 400:
            raise Refused(response)
        return response

    def read(self, path, query=None, minor=0):
        """Read a document.

        :param path: str
        :param query: dict of query parameters, as for :meth:`send`
        :param minor: int, as for :meth:`send`
        :returns: tuple of the document, a dict, and its ETag, None if it has none
        :raises Refused: as for :meth:`send`
        """
        response = self.send("GET", path, query=query, minor=minor)
        return document_of(response), response.headers.get("ETag")


def _numbers(version):
    major, _, minor = version.partition(".")
    return int(major), int(minor)


def document_of(response):
    """Return the JSON object of an answer.

    :param response: :class:`requests.Response`
    :returns: dict
    :raises osc_lib.exceptions.CommandError: if it is something else, for example because the
        endpoint is the address of another program
    """
    # Another service may answer with a JSON object, too.
    if not header_of(response, "OpenStack-API-Version").startswith("placement "):
        raise _not_ours(response)
    try:
        document = response.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise _not_ours(response)
    return document


def header_of(response, name):
    """Return a header that the service sends with every such answer.

    :raises osc_lib.exceptions.CommandError: if it is missing: another program answered
    """
    value = response.headers.get(name)
    if value is None:
        raise _not_ours(response)
    return value


def _not_ours(response):
    return exceptions.CommandError(
        f"{response.url} was not answered by the placement service; check the endpoint")
