# SPDX-License-Identifier: Apache-2.0
"""Requests to the HTTP facade, and what its refusals say."""

import urllib.parse

from osc_lib import exceptions


class Refused(exceptions.CommandError):
    """The server did not do what was asked; the text is its reason, in one line.

    ``status`` is the HTTP status as an int, ``error`` the server's error object, or an empty
    dict where it sent none (guidelines of the API working group on errors).
    """

    def __init__(self, response):
        self.status = response.status_code
        self.error = _error_of(response)
        super().__init__(_one_line(
            self.error.get("detail") or self.error.get("title")
            or f"{response.url} answered {response.status_code} {response.reason}"))


def _error_of(response):
    """The first error object of an answer; a proxy in between sends none."""
    try:
        body = response.json()
    except ValueError:
        return {}
    errors = body.get("errors") if isinstance(body, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return first if isinstance(first, dict) else {}


def _one_line(text):
    # The validator of JSON puts the whole schema behind its reason.
    return " ".join(str(text).partition("Failed validating")[0].split())


def path_of(*parts):
    """An address from its parts, each of them quoted.

    :param parts: str
    :returns: str, with a leading slash
    """
    return "/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


class Client:
    """A placement service over HTTP.

    :param adapter: :class:`keystoneauth1.adapter.Adapter` that raises nothing on a status
    """

    def __init__(self, adapter):
        self._adapter = adapter

    @property
    def microversion(self):
        """tuple of two ints, what every request asks for"""
        major, _, minor = self._adapter.default_microversion.partition(".")
        return int(major), int(minor)

    def need(self, minor, what):
        """Refuse what the chosen microversion has not.

        :param minor: int, the first minor version that has it
        :param what: str, what needs it, in the plural
        :raises osc_lib.exceptions.CommandError: when an older one was chosen
        """
        if self.microversion < (1, minor):
            raise exceptions.CommandError(
                f"{what} need --os-placement-rpc-api-version 1.{minor} or later, and "
                f"{self._adapter.default_microversion} was chosen")

    def send(self, method, path, body=None, etag=None, query=None):
        """One request.

        :param method: str, of HTTP
        :param path: str, below the endpoint
        :param body: JSON value; None for a request without a body
        :param etag: str that what is changed must still have; None for any
        :param query: dict of query parameters; those that are None are left out
        :returns: :class:`requests.Response` of a status below 400
        :raises Refused: on any other
        :raises keystoneauth1.exceptions.ClientException: when no answer was had
        """
        given = {"headers": {"Accept": "application/json"}}
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

    def read(self, path, query=None):
        """What is at an address.

        :param path: str
        :param query: dict of query parameters, as of :meth:`send`
        :returns: (dict, str): the document and its ETag, which is None where it has none
        :raises Refused: as :meth:`send`
        """
        response = self.send("GET", path, query=query)
        return document_of(response), response.headers.get("ETag")


def document_of(response):
    """The JSON object of an answer.

    :param response: :class:`requests.Response`
    :returns: dict
    :raises osc_lib.exceptions.CommandError: when it is something else, as where the endpoint
        is the address of another program
    """
    try:
        document = response.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise exceptions.CommandError(
            f"{response.url} did not answer with a JSON object: is the endpoint that of the "
            "placement service?")
    return document
