# SPDX-License-Identifier: Apache-2.0
"""The versioned objects of the contract, and the rules about them."""

import importlib

_MODULES = ("aggregate", "allocation", "claim", "compute_node", "consumer",
            "event_page", "explanation", "inventory",
            "node_disagreements", "node_sync", "outcome", "payloads", "request",
            "resource_class", "resource_provider", "service", "usage")


def register_all():
    """Import every object, so that it can be taken off the bus."""
    for name in _MODULES:
        importlib.import_module(f"placement_rpc.objects.{name}")
