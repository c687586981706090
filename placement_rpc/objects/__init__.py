# SPDX-License-Identifier: Apache-2.0
"""The versioned objects of the contract."""

import importlib

_MODULES = ("aggregate", "allocation", "candidates", "claim", "consumer", "event_page",
            "explanation", "headroom", "inventory", "nova.compute_node", "payloads", "request",
            "request_result", "reshape", "resource_class", "resource_provider", "service",
            "summaries", "sync_result", "trait", "usage")


def register_all() -> None:
    """Import all modules of objects, so that any object can be deserialized."""
    for name in _MODULES:
        importlib.import_module(f"placement_rpc.objects.{name}")
