# SPDX-License-Identifier: Apache-2.0
"""Options of finding candidates."""

from oslo_config import cfg

GROUP = cfg.OptGroup("candidates", title="Finding providers that have room")

OPTS = [
    cfg.BoolOpt(
        "index", default=True,
        help="Whether each conductor holds the providers, with what is free of them, in memory, "
             "and answers from there. The index is brought up to date before each answer; the "
             "store remains the truth. About 100 bytes for each provider and class. Without it, "
             "the same questions are asked of the database."),
    cfg.IntOpt(
        "verify_sample", default=500, min=0,
        help="How many providers of the index are compared with the store each "
             "[conductor] report_interval, one part of the fleet after the other. When one "
             "differs, the index is dropped and made anew. 0 for none."),
]
