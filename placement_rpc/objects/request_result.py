# SPDX-License-Identifier: Apache-2.0
"""The stored outcome of a request."""

import typing

from placement_rpc import exception
from placement_rpc.objects import base, fields


def outcome_result(stored: dict) -> typing.Any:
    """Return the result of a stored outcome, or raise its error.

    :param stored: dict with either ``result`` or ``error``
    :raises PlacementException: the stored error
    """
    if "error" in stored:
        raise exception.from_code(stored["error"]["code"], stored["error"]["kwargs"])
    return base.Serializer().deserialize_entity(None, stored["result"])


@base.PlacementObjectRegistry.register
class RequestResult(base.PlacementObject):
    """The stored outcome of a request."""

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "request_id": fields.field(fields.Text(64)),
        "method": fields.field(fields.Text(64)),
        "outcome": fields.field(fields.Json()),
    }

    def result(self) -> typing.Any:
        """Return the result of the request, or raise the error with which it was refused."""
        return outcome_result(self.outcome)
