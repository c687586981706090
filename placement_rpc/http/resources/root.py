# SPDX-License-Identifier: Apache-2.0
"""The versions of the API and its description, which need no token."""

from placement_rpc.http import microversion
from placement_rpc.http.call import Answer


def versions(call):
    """List the versions of the API."""
    return Answer(body={"versions": [{
        "id": f"v{microversion.text(microversion.MIN)}", "status": "CURRENT",
        "min_version": microversion.text(microversion.MIN),
        "max_version": microversion.text(microversion.MAX),
        "links": [{"rel": "self", "href": call.prefix}]}]})


def description(call):
    """Show the OpenAPI description of the newest microversion."""
    return Answer(body=call.openapi)
