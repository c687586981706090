# SPDX-License-Identifier: Apache-2.0
"""The default of all rules: administrators and services may do everything
(generic-resource-pools, REST API impact)."""

from oslo_policy import policy

ADMIN_OR_SERVICE = "rule:admin_or_service_api"

RULES = [
    policy.RuleDefault(
        "admin_or_service_api", "role:admin or role:service", scope_types=["project"],
        description="Default of all rules: administrators of the cloud, and its services."),
]


def rule(name, description, *operations):
    """Return a rule with the default check.

    :param operations: str each, method and path separated by a space
    :returns: :class:`oslo_policy.policy.DocumentedRuleDefault`
    """
    return policy.DocumentedRuleDefault(
        name, ADMIN_OR_SERVICE, description,
        [dict(zip(("method", "path"), each.split(" "), strict=True)) for each in operations],
        scope_types=["project"])
