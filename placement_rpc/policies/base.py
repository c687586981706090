# SPDX-License-Identifier: Apache-2.0
"""The default of all rules: administrators and services may do everything
(generic-resource-pools, REST API impact)."""

from oslo_policy import policy

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
ADMIN_SERVICE_OR_READER = "rule:admin_or_project_reader_or_service_api"

RULES = [
    policy.RuleDefault(
        "admin_or_service_api", "role:admin or role:service", scope_types=["project"],
        description="Default of all rules: administrators of the cloud, and its services."),
    policy.RuleDefault(
        "project_reader_api", "role:reader and project_id:%(project_id)s",
        scope_types=["project"], description="Readers of the project that is asked for."),
    policy.RuleDefault(
        "admin_or_project_reader_or_service_api",
        "rule:admin_or_service_api or rule:project_reader_api", scope_types=["project"],
        description="Default of what users may ask of their own project."),
]


def rule(name, description, *operations, check=ADMIN_OR_SERVICE):
    """Return a rule.

    :param check: str, its default
    :param operations: str each, method and path separated by a space
    :returns: :class:`oslo_policy.policy.DocumentedRuleDefault`
    """
    return policy.DocumentedRuleDefault(
        name, check, description,
        [dict(zip(("method", "path"), each.split(" "), strict=True)) for each in operations],
        scope_types=["project"])
