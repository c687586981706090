# SPDX-License-Identifier: Apache-2.0
"""A request whose answers are compared.

Names in angle brackets are those of :class:`tests.conformance.wire.World`.
"""

import dataclasses
import json

from tests.conformance import wire

_NOTHING = object()
_LATEST = "1.4"


@dataclasses.dataclass
class Case:
    """A request.

    :ivar version: str, of the header; None for no header, with a blank for a whole header
    :ivar body: what is sent as JSON
    :ivar raw: bytes that are sent instead
    :ivar headers: dict of further headers, None removes one
    :ivar whole: bool, whether the values in the answer count; otherwise their types do
    """

    name: str
    request: str
    body: object = _NOTHING
    version: str | None = _LATEST
    raw: bytes | None = None
    headers: dict = dataclasses.field(default_factory=dict)
    whole: bool = True

    @property
    def changes(self):
        """Whether the request may change something."""
        return self.request.split()[0] in ("POST", "PUT", "DELETE")

    def send(self, address, world):
        """Send the request; return a :class:`tests.conformance.wire.Answer`."""
        method, path = world.fill(self.request).split(" ", 1)
        path = path.replace(" ", "%20")
        body = self.raw
        if self.body is not _NOTHING:
            body = json.dumps(world.fill(self.body)).encode()
        headers = {"x-auth-token": "admin"}
        if body is not None:
            headers["content-type"] = "application/json"
        if self.version is not None:
            headers["openstack-api-version"] = (
                self.version if self.version.strip(".0123456789") else f"placement {self.version}")
        headers.update(world.fill(self.headers))
        return wire.send(address, method, path, {
            name: value for name, value in headers.items() if value is not None}, body)
