# SPDX-License-Identifier: Apache-2.0
"""Options of the search for candidates."""

from oslo_config import cfg

GROUP = cfg.OptGroup("candidates", title="Search for providers that have room")

OPTS = [
    cfg.BoolOpt(
        "index", default=True,
        deprecated_for_removal=True, deprecated_since="2026.3",
        deprecated_reason="Candidates are always found in the index in memory; the search in the "
                          "database was removed.",
        help="Ignored. Each process that finds candidates holds an index in memory."),
    cfg.IntOpt(
        "max_found", default=10_000, min=1,
        help="Maximum number of providers that one search for candidates returns, also if it "
             "names a higher limit or none; the answer says whether there are more. A higher "
             "number allows larger answers, which take memory and processor time of the worker."),
    cfg.IntOpt(
        "verify_sample", default=500, min=0,
        help="Number of providers of the index that are compared with the database in each "
             "[conductor] report_interval, one part of the fleet after the other. If one "
             "differs, the index is dropped and rebuilt. A higher number finds a difference "
             "sooner and costs more queries. 0 turns the comparison off."),
]
