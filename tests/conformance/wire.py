# SPDX-License-Identifier: Apache-2.0
"""Requests on the wire, and the parts of their answers that are compared."""

import http.client
import json
import uuid

_HEADERS = ("openstack-api-version", "vary", "content-type", "cache-control",
            "www-authenticate")
# Words that clients, and the peer's own tests, look for in an error's detail.
_WORDS = (
    "JSON does not validate", "Malformed JSON", "Invalid query string parameters",
    "Unacceptable version header", "invalid version string", "content-type header required",
    "The media type", "Only application/json is provided", "The resource could not be found",
    "is not allowed for this resource", "Additional properties are not allowed",
    "No resource provider with uuid", "found for delete", "Conflicting resource provider name",
    "Conflicting resource provider uuid", "Unable to delete resource provider",
    "Unable to delete parent resource provider", "Resource provider has allocations",
    "It has child resource providers", "parent provider UUID does not exist",
    "parent provider UUID cannot be same as UUID", "re-parenting a provider is not currently",
    "un-parenting a provider is not currently", "creating loop in the provider tree",
    "resource provider generation conflict", "Resource provider's generation already changed",
    "consumer generation conflict - expected", "Update conflict", "update conflict",
    "Unable to create inventory for resource provider", "Unable to update inventory",
    "Unknown resource class in inventory", "No inventory record with resource class",
    "Unable to delete inventory of class", "No inventory of class", "Inventory for '", "in use",
    "Unable to allocate inventory", "The requested amount would exceed the capacity",
    "The requested amount would violate inventory constraints",
    "Allocation for resource provider", "that does not exist", "Malformed consumer_uuid",
    "No allocations for consumer", "No such trait",
    "Conflicting resource class already exists", "Resource class already exists",
    "Cannot update standard resource class", "Cannot delete standard resource class",
    "Error in delete resource class", "Class is in use in inventory", "The trait is invalid",
    "Cannot delete standard trait", "is in use by a resource provider",
    "Badly formatted name parameter", 'The query parameter "associated" only accepts',
    "Badly formed resources parameter", "expected positive integer amount",
    "requires amount >= 1", "Invalid resource class in resources parameter",
    "Expected 'required' parameter value of the form", "only supported since microversion 1.39",
    "Expected 'member_of' parameter to contain valid UUID(s)",
    "Multiple member_of parameters are not supported",
    "Forbidden member_of parameters are not supported",
    "Expected 'in_tree' parameter to be a format of uuid", "At least one request group",
    "All request groups must specify resources", "Found the following orphaned traits keys",
    "All member_of parameters must be associated with resources",
    "Found the following orphaned member_of keys", "requires amount",
    "Conflicting required and forbidden traits found in the following traits keys",
    "Conflicting required and forbidden traits found in root_required",
    "Query parameter 'root_required' may be specified only once",
    "There must be at least one resources or resources[$S]", "can not be specified in",
    "Resourceless suffixed group request should be specified in", "bad group(s)",
    "Real suffixes should be specified in", "not found in", "does not support forbidden traits",
    'The "group_policy" parameter is required when specifying more than one',
    "Got an empty trait in", "Got: empty string", "No such resource class")
# With what the peer's library says of the status its details begin.
_PREAMBLE = "The resource could not be found.\n\n "
# They have their own rule here, by which every change of a provider raises its generation.
_GENERATIONS = ("generation", "resource_provider_generation")
# The first microversion at which the peer's errors have a code.
_CODES = (1, 23)


class Names:
    """Names of what exists on both servers, made in the same way on each of them.

    They are the attributes that are texts.
    """

    def requests(self):
        """Yield the requests that make it: microversion, method, path, and body or None."""
        raise NotImplementedError

    def fill(self, value):
        """Put the names into a text, or into all texts of a JSON value."""
        if isinstance(value, dict):
            return {self.fill(key): self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, str):
            for name, its in vars(self).items():
                value = value.replace(f"<{name}>", its).replace(f"<{name.upper()}>", its.upper())
        return value

    def make(self, address):
        """Create the resources on a server.

        :raises AssertionError: if a request fails
        """
        for version, method, path, body in self.requests():
            answer = send(address, method, path, {
                "x-auth-token": "admin", "content-type": "application/json",
                "openstack-api-version": f"placement {version}"},
                None if body is None else json.dumps(body).encode())
            if answer.status >= 300:
                raise AssertionError(f"{method} {path}: {answer.status} {answer.body}")


class World(Names):
    """Providers of all sorts, and what is theirs.

    There are a provider that is ``full`` of all sorts, a ``consumer`` of it, a ``child`` of it
    that has a ``trait``, an ``empty`` one, a ``grouped`` one in an ``aggregate``, and two custom
    classes, one ``used`` and one ``free``. ``missing`` is an unused uuid, and ``name`` an unused
    name.

    A ``root`` has a ``leaf``. Of the leaf there is a consumer that is ``owned`` by a ``project``
    and a ``user``, of the root one that is ``typed``.
    """

    def __init__(self):
        self.full, self.empty, self.grouped, self.consumer, self.aggregate, self.missing = (
            str(uuid.uuid4()) for _ in range(6))
        self.child, self.root, self.leaf, self.owned, self.typed, self.project, self.user = (
            str(uuid.uuid4()) for _ in range(7))
        self.mark = mark = uuid.uuid4().hex.upper()
        self.used, self.free = f"CUSTOM_USED_{mark}", f"CUSTOM_FREE_{mark}"
        self.name, self.trait = f"name {mark}", f"CUSTOM_TRAIT_{mark}"

    def requests(self):
        yield from self._of_the_first_versions()
        yield from self._of_the_last()

    def _of_the_first_versions(self):
        provider = f"/resource_providers/{self.full}"
        return (
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
                "resources": {"VCPU": 2, "DISK_GB": 10}}]}))

    def _of_the_last(self):
        return (
            ("1.6", "PUT", f"/traits/{self.trait}", None),
            ("1.14", "POST", "/resource_providers", {
                "name": f"child {self.child}", "uuid": self.child,
                "parent_provider_uuid": self.full}),
            ("1.6", "PUT", f"/resource_providers/{self.child}/traits", {
                "resource_provider_generation": 0, "traits": [self.trait]}),
            ("1.14", "POST", "/resource_providers",
             {"name": f"root {self.root}", "uuid": self.root}),
            ("1.14", "POST", "/resource_providers", {
                "name": f"leaf {self.leaf}", "uuid": self.leaf,
                "parent_provider_uuid": self.root}),
            ("1.14", "POST", f"/resource_providers/{self.root}/inventories",
             {"resource_class": "VCPU", "total": 8}),
            ("1.14", "POST", f"/resource_providers/{self.leaf}/inventories",
             {"resource_class": "VGPU", "total": 4}),
            ("1.28", "PUT", f"/allocations/{self.owned}", self._claim(self.leaf, {"VGPU": 1})),
            ("1.38", "PUT", f"/allocations/{self.typed}",
             self._claim(self.root, {"VCPU": 2}, consumer_type="INSTANCE")))

    def _claim(self, provider, resources, **more):
        return {"allocations": {provider: {"resources": resources}}, "project_id": self.project,
                "user_id": self.user, "consumer_generation": None, **more}


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
        return {"status": self.status, "body": _comparable(self._decoded(), whole, self._has_code),
                **{name: self.headers.get(name) for name in _HEADERS},
                "has a time": "last-modified" in self.headers,
                "allow": sorted(self.headers.get("allow", "").replace(",", " ").split()),
                "location": self._location(whole),
                "has a request id": "x-openstack-request-id" in self.headers}

    @property
    def _has_code(self):
        version = self.headers.get("openstack-api-version", "").partition(" ")[2] or "1.0"
        return tuple(map(int, version.split("."))) >= _CODES

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


def _comparable(value, whole, has_code):
    if isinstance(value, dict):
        value = {name: "..." if name in _GENERATIONS else item for name, item in value.items()
                 if name != "exact_code" and (has_code or name != "code")}
        if "detail" in value:
            detail = value["detail"].removeprefix(_PREAMBLE)
            value["detail"] = [words for words in _WORDS if words in detail]
        return {name: "..." if name in ("request_id", "max_version") else
                item if name == "detail" else _comparable(item, whole, has_code)
                for name, item in value.items()}
    if isinstance(value, list):
        found = [_comparable(item, whole, has_code) for item in value]
        if not whole:
            found = [item for number, item in enumerate(found) if item not in found[:number]]
        return ordered(found)
    return value if whole else type(value).__name__


def ordered(value):
    """Return a JSON value with all of its lists sorted."""
    if isinstance(value, dict):
        return {name: ordered(item) for name, item in value.items()}
    if isinstance(value, list):
        return sorted(map(ordered, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def without_more_words(body, other):
    """Remove the words from errors that the other's do not have: an error may say more.

    :param body: as of :meth:`Answer.comparable`
    :param other: the same of the peer
    """
    if isinstance(body, dict) and isinstance(other, dict) and "errors" in body and (
            "errors" in other):
        for error, its in zip(body["errors"], other["errors"], strict=True):
            error["detail"] = [words for words in error["detail"] if words in its["detail"]]


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
