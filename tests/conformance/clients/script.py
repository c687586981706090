# SPDX-License-Identifier: Apache-2.0
"""A script's steps, and what is written down of each."""

import contextlib
import functools
import json
import types
import uuid

import requests
from clients import plain, wire

_TIMEOUT = 60


class UnexpectedEnd(Exception):
    """A step returned where it should have raised, or the other way round."""


class Script(contextlib.ExitStack):
    """Runs the steps of one script against one server.

    :param url: str, address of the server
    :param seed: str of letters and digits; uuids and names are made from it, so that a script uses
        the same ones against each server, and scripts that share a server do not meet
    """

    def __init__(self, url, seed):
        super().__init__()
        self.url = url
        self.wire = wire.Wire(url)
        self._seed = seed
        self._uuids = {}
        self._steps = []

    @functools.cached_property
    def _other(self):
        return requests.Session()

    def uuid(self, label):
        """Return the uuid that stands for a label."""
        found = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._seed} {label}"))
        self._uuids[found] = label
        return found

    def name(self, label):
        """Return the name that stands for a label, such as that of a host."""
        return f"{label}-{self._seed.lower()}"

    def custom(self, label):
        """Return the name that stands for a label of a custom trait or resource class."""
        return f"CUSTOM_{label}_{self._seed.upper()}"

    def step(self, title, function, *arguments, raises=None, may_return=False, **named):
        """Call a function and write down what it returned or raised, and its requests.

        :param raises: name of the class of the exception that is expected, if one is
        :param may_return: whether it may as well return, since servers are known to differ
        :returns: what the function returned; None if it raised
        :raises UnexpectedEnd: if it ended otherwise than expected
        """
        step = {"step": title}
        self._steps.append(step)
        found = None
        with self.wire.recording(step.setdefault("requests", [])):
            try:
                found = function(*arguments, **named)
                if isinstance(found, types.GeneratorType):
                    # Some clients ask only when their answer is looped over.
                    found = list(found)
            except Exception as error:
                step["raised"] = type(error).__name__
                step["text"] = str(error)
                if step["raised"] != raises:
                    raise
                return None
        step["returned"] = plain.plain(found)
        if raises and not may_return:
            raise UnexpectedEnd(f"{title}: {step['returned']} instead of {raises}")
        return found

    def send(self, method, path, body=None, version="1.39"):
        """Send a request as another client would, which is not written down.

        :returns: JSON of the answer; None if it has no body
        """
        answer = self._other.request(
            method, self.url + path, json=body, timeout=_TIMEOUT, headers={
                "x-auth-token": "admin", "accept": "application/json",
                "openstack-api-version": f"placement {version}"})
        if not answer.ok:
            raise UnexpectedEnd(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer.json() if answer.content else None

    def transcript(self):
        """Return the steps as JSON types, with labels for uuids and names."""
        text = json.dumps(self._steps)
        for found, label in self._uuids.items():
            text = text.replace(found, f"<{label}>")
        for suffix in (f"-{self._seed.lower()}", f"_{self._seed.upper()}"):
            text = text.replace(suffix, "")
        return json.loads(text)
