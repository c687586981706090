# SPDX-License-Identifier: Apache-2.0
"""The policy rules of the HTTP API: data, a module per resource."""

from placement_rpc.policies import (
    aggregate,
    allocation,
    allocation_candidate,
    base,
    event,
    inventory,
    reshaper,
    resource_class,
    resource_provider,
    summary,
    trait,
    usage,
)

_MODULES = (resource_provider, inventory, usage, allocation, allocation_candidate, aggregate,
            trait, resource_class, reshaper, summary, event)

#: Names of the rules about what belongs to consumers, and so to their projects.
OF_CONSUMERS = frozenset((
    *(each.name for each in allocation.RULES), event.LIST, reshaper.RESHAPE,
    summary.CONSUMERS, usage.OF_PROJECT))


def list_rules():
    """Return all rules, for oslo.policy's generators too.

    :returns: list of :class:`oslo_policy.policy.RuleDefault`
    """
    return [*base.RULES, *(rule for module in _MODULES for rule in module.RULES)]
