# SPDX-License-Identifier: Apache-2.0
"""What the service says of itself: its versions, and the description of its API."""

from placement_rpc.http import microversion, openapi
from placement_rpc.http.call import Answer


def versions(call):
    """GET of the root."""
    return Answer(body={"versions": [{
        "id": f"v{microversion.text(microversion.MIN)}", "status": "CURRENT",
        "min_version": microversion.text(microversion.MIN),
        "max_version": microversion.text(microversion.MAX),
        "links": [{"rel": "self", "href": call.prefix}]}]})


def description(call):
    """GET of the OpenAPI document."""
    return Answer(body=openapi.document())
