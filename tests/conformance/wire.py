# SPDX-License-Identifier: Apache-2.0
"""Requests on the wire, and the parts of their answers that are compared."""

import http.client
import json
import uuid

_TEMPLATES = ("full", "empty", "grouped", "consumer", "aggregate", "missing", "used", "free",
              "name")
_HEADERS = ("openstack-api-version", "vary", "content-type", "cache-control",
            "www-authenticate")
# Words that clients look for in an error's detail.
_WORDS = (
    "JSON does not validate", "Malformed JSON", "Invalid query string parameters",
    "Unacceptable version header", "invalid version string", "content-type header required",
    "The media type", "Only application/json is provided")


class World:
    """Names of what exists on both servers, made in the same way on each of them.

    There are a provider that is ``full`` of all sorts, a ``consumer`` of it, an ``empty`` one, a
    ``grouped`` one in an ``aggregate``, and two custom classes, one ``used`` and one ``free``.
    ``missing`` is an unused uuid, and ``name`` an unused name.
    """

    def __init__(self):
        self.full, self.empty, self.grouped, self.consumer, self.aggregate, self.missing = (
            str(uuid.uuid4()) for _ in range(6))
        mark = uuid.uuid4().hex.upper()
        self.used, self.free = f"CUSTOM_USED_{mark}", f"CUSTOM_FREE_{mark}"
        self.name = f"name {mark}"

    def fill(self, value):
        """Put the names into a text, or into all texts of a JSON value."""
        if isinstance(value, dict):
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, str):
            for name in _TEMPLATES:
                value = value.replace(f"<{name}>", getattr(self, name))
            return value.replace("<FULL>", self.full.upper())
        return value

    def make(self, address):
        """Create the resources on a server.

        :raises AssertionError: if a request fails
        """
        provider = f"/resource_providers/{self.full}"
        for version, method, path, body in (
                ("1.2", "POST", "/resource_classes", {"name": self.used}),
                ("1.2", "POST", "/resource_classes", {"name": self.free}),
                ("1.0", "POST", "/resource_providers",
                 {"name": f"empty {self.empty}", "uuid": self.empty}),
                ("1.0", "POST", "/resource_providers",
                 {"name": f"full {self.full}", "uuid": self.full}),
                ("1.0", "PUT", f"{provider}/inventories", {
                    "resource_provider_generation": 0, "inventories": {
                        "VCPU": {"total": 10}, "MEMORY_MB": {
                            "total": 1000, "allocation_ratio": 1.5}, self.used: {"total": 4},
                        "DISK_GB": {"total": 100, "reserved": 10, "min_unit": 5, "max_unit": 20,
                                    "step_size": 5}}}),
                ("1.0", "POST", "/resource_providers",
                 {"name": f"grouped {self.grouped}", "uuid": self.grouped}),
                ("1.0", "POST", f"/resource_providers/{self.grouped}/inventories",
                 {"resource_class": "VCPU", "total": 10}),
                ("1.1", "PUT", f"/resource_providers/{self.grouped}/aggregates",
                 [self.aggregate]),
                ("1.0", "PUT", f"/allocations/{self.consumer}", {"allocations": [{
                    "resource_provider": {"uuid": self.full},
                    "resources": {"VCPU": 2, "DISK_GB": 10}}]})):
            answer = send(address, method, path, {
                "x-auth-token": "admin", "content-type": "application/json",
                "openstack-api-version": f"placement {version}"}, json.dumps(body).encode())
            if answer.status >= 300:
                raise AssertionError(f"{method} {path}: {answer.status} {answer.body}")


class Answer:
    """An answer: ``status``, ``headers`` with names in lower case, ``body`` as bytes."""

    def __init__(self, address, response):
        self._address = address
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def comparable(self, whole):
        """Return the parts that have to be the same on both servers.

        :param whole: bool, whether the values of the body count; otherwise their types do
        """
        return {"status": self.status, "body": _comparable(self._decoded(), whole),
                **{name: self.headers.get(name) for name in _HEADERS},
                "has a time": "last-modified" in self.headers,
                "allow": sorted(self.headers.get("allow", "").replace(",", " ").split()),
                "location": self._location(whole),
                "has a request id": "x-openstack-request-id" in self.headers}

    def _decoded(self):
        if self.body and self.headers.get("content-type", "").startswith("application/json"):
            return json.loads(self.body)
        return self.body.decode() and "something that is no JSON"

    def _location(self, whole):
        location = self.headers.get("location")
        if location is None:
            return None
        path = location.replace(self._address, "<address>")
        return path if whole else path.rsplit("/", 1)[0]

    def summary(self):
        """Return a short description."""
        decoded = self._decoded()
        if isinstance(decoded, dict) and "errors" in decoded:
            # Upstream's begin with a paragraph on what the status means.
            detail = decoded["errors"][0].get("detail", "").strip().split("\n\n", 1)[-1]
            return detail.strip().replace("\n", " ")[:80]
        return ", ".join(decoded) if isinstance(decoded, dict) else f"{decoded}"[:80]


def _comparable(value, whole):
    if isinstance(value, dict):
        if "detail" in value:
            # Every error has a code here; upstream's have it from 1.23 on.
            value = {name: item for name, item in value.items() if name != "code"}
            value["detail"] = next(
                (words for words in _WORDS if words in value["detail"]), "...")
        return {name: "..." if name in ("request_id", "max_version") else _comparable(item, whole)
                for name, item in value.items()}
    if isinstance(value, list):
        found = [_comparable(item, whole) for item in value]
        if not whole:
            found = [item for number, item in enumerate(found) if item not in found[:number]]
        return sorted(found, key=lambda item: json.dumps(item, sort_keys=True))
    return value if whole else type(value).__name__


def send(address, method, path, headers, body=None):
    """Send a request with exactly these headers, in addition to Host and the body's length.

    :param address: str, as in ``http://127.0.0.1:8000``
    :param body: bytes
    :returns: :class:`Answer`
    """
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    try:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(body)
        return Answer(address, connection.getresponse())
    finally:
        connection.close()
