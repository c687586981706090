# SPDX-License-Identifier: Apache-2.0
"""What the rules have in common: administrators and services may do everything
(generic-resource-pools, REST API impact)."""

from oslo_policy import policy

ADMIN_OR_SERVICE = "rule:admin_or_service_api"

RULES = [
    policy.RuleDefault(
        "admin_or_service_api", "role:admin or role:service", scope_types=["project"],
        description="Default of all rules: administrators of the cloud, and its services."),
]


def rule(name, description, *operations):
    """A rule of the default.

    :param operations: str each, method and path
    :returns: :class:`oslo_policy.policy.DocumentedRuleDefault`
    """
    return policy.DocumentedRuleDefault(
        name, ADMIN_OR_SERVICE, description,
        [dict(zip(("method", "path"), each.split(" "), strict=True)) for each in operations],
        scope_types=["project"])
