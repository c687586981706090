# SPDX-License-Identifier: Apache-2.0
"""Who may do what over HTTP: rules as data, a module per resource."""

from placement_rpc.policies import (
    aggregate,
    allocation,
    base,
    event,
    inventory,
    resource_class,
    resource_provider,
    usage,
)

_MODULES = (resource_provider, inventory, usage, allocation, aggregate, resource_class, event)

#: dict of RPC method to the names of the rules of which one lets a person make the call
METHODS = {}
for _module in _MODULES:
    for _method, _rules in _module.METHODS.items():
        METHODS[_method] = METHODS.get(_method, frozenset()) | frozenset(_rules)


def list_rules():
    """For oslo.policy's generators.

    :returns: list of :class:`oslo_policy.policy.RuleDefault`
    """
    return [*base.RULES, *(rule for module in _MODULES for rule in module.RULES)]
