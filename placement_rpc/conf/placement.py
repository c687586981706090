# SPDX-License-Identifier: Apache-2.0
"""Options with OpenStack Placement's names, so that its configuration file applies unchanged."""

from oslo_config import cfg

GROUP = cfg.OptGroup("placement", title="Options that OpenStack Placement has too")

# Project and user of a consumer that was created before microversion 1.8, at which requests
# cannot name them.
_INCOMPLETE = "00000000-0000-0000-0000-000000000000"

OPTS = [
    cfg.StrOpt(
        "incomplete_consumer_project_id", default=_INCOMPLETE, deprecated_group="api",
        help="Project of a consumer that is created by a request before microversion 1.8, which "
             "cannot name one."),
    cfg.StrOpt(
        "incomplete_consumer_user_id", default=_INCOMPLETE, deprecated_group="api",
        help="User of a consumer that is created by a request before microversion 1.8, which "
             "cannot name one."),
    cfg.IntOpt(
        "allocation_conflict_retry_count", min=0, sample_default="<[claims] max_attempts - 1>",
        help="Number of times that the service repeats a transaction that conflicts with "
             "concurrent writers. If it is set, it replaces [claims] max_attempts, which also "
             "counts the first attempt. In OpenStack Placement, 0 makes every change of "
             "allocations fail; here it makes one attempt. A higher number makes errors under "
             "contention rarer, and calls slower."),
]


def attempts(conf):
    """Return the maximum number of attempts at a transaction that conflicts.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """
    retries = conf.placement.allocation_conflict_retry_count
    return conf.claims.max_attempts if retries is None else retries + 1
