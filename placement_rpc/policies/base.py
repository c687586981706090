# SPDX-License-Identifier: Apache-2.0
"""The rules that the defaults of all others refer to, as in OpenStack Placement.

Names and defaults are Placement's, so that an operator's policy file applies unchanged. So do its
deprecated defaults: with ``[oslo_policy] enforce_new_defaults = false``, ``role:admin`` satisfies
each of these rules, for example that of the reshaper, which is for services alone.
"""

from oslo_policy import policy

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
ADMIN_SERVICE_OR_READER = "rule:admin_or_project_reader_or_service_api"
SERVICE = "rule:service_api"

_BEFORE = policy.DeprecatedRule(
    "rule:admin_api", "role:admin", deprecated_since="W",
    deprecated_reason="OpenStack Placement has roles for services and for readers.")


def _base(name, check, description, deprecated=_BEFORE):
    return policy.RuleDefault(name, check, description, scope_types=["project"],
                              deprecated_rule=deprecated)


RULES = [
    _base("admin_api", "role:admin", "Administrators of the cloud.", None),
    _base("service_api", "role:service", "Services of the cloud."),
    _base("admin_or_service_api", "role:admin or role:service",
          "Default of most rules: administrators of the cloud, and its services."),
    _base("project_reader_api", "role:reader and project_id:%(project_id)s",
          "Readers of the project that is asked for."),
    _base("admin_or_project_reader_or_service_api",
          "role:admin or rule:project_reader_api or role:service",
          "Default of what users may ask of their own project."),
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
