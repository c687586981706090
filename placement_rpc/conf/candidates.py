# SPDX-License-Identifier: Apache-2.0
"""Options of the search for candidates."""

from oslo_config import cfg

GROUP = cfg.OptGroup("candidates", title="Search for providers that have room")

OPTS = [
    cfg.BoolOpt(
        "index", default=True,
        help="Whether each conductor keeps an index of all providers and their free capacity in "
             "memory and answers searches from it. The index is brought up to date with the "
             "database before each answer, and takes about 100 bytes for each inventory. If "
             "false, each search is a database query, whose cost grows with the cloud."),
    cfg.IntOpt(
        "verify_sample", default=500, min=0,
        help="Number of providers of the index that are compared with the database in each "
             "[conductor] report_interval, one part of the fleet after the other. If one "
             "differs, the index is dropped and rebuilt. A higher number finds a difference "
             "sooner and costs more queries. 0 turns the comparison off."),
]
