# SPDX-License-Identifier: Apache-2.0
"""Options with OpenStack Placement's names, so that its configuration file applies unchanged."""

from oslo_config import cfg

GROUP = cfg.OptGroup("placement", title="Options that OpenStack Placement has too")

# Project and user of a consumer that was created before microversion 1.8, at which requests
# cannot name them.
_INCOMPLETE = "00000000-0000-0000-0000-000000000000"

#: Strategies of finding candidates.
BREADTH_FIRST, DEPTH_FIRST = "breadth-first", "depth-first"

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
    cfg.IntOpt(
        "max_allocation_candidates", default=10_000, min=-1,
        help="Maximum number of allocation candidates in one answer, also if the request names a "
             "higher limit or none. An answer that is cut here is logged and counted in the "
             "metrics. A higher number allows larger answers, which take memory and processor "
             "time of the worker and of the client. -1 is no maximum, the default of OpenStack "
             "Placement; 0 is read as 1."),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy", default=BREADTH_FIRST,
        choices=[
            (BREADTH_FIRST, "one candidate of each tree of providers, then a second one of each"),
            (DEPTH_FIRST, "all candidates of a tree before the next one, the default of "
                          "OpenStack Placement")],
        help="Order in which trees of providers contribute to an answer that is cut by a limit. "
             "With depth-first such an answer may have candidates of few trees only."),
    cfg.BoolOpt(
        "randomize_allocation_candidates", default=False,
        help="Whether an answer that is cut by the limit of its request is a random sample of "
             "all candidates, up to max_allocation_candidates, and candidates are in random "
             "order. If this is off, an answer has the candidates that are found first, from a "
             "random tree on. A sample takes more processor time, since all candidates are found "
             "for it."),
]


def attempts(conf):
    """Return the maximum number of attempts at a transaction that conflicts.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """
    retries = conf.placement.allocation_conflict_retry_count
    return conf.claims.max_attempts if retries is None else retries + 1


def max_candidates(conf):
    """Return the maximum number of allocation candidates in an answer; None for no maximum.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """
    most = conf.placement.max_allocation_candidates
    return None if most == -1 else max(1, most)
