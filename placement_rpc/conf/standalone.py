# SPDX-License-Identifier: Apache-2.0
"""Options of the embedded default, where one process is the whole service."""

from oslo_config import cfg

GROUP = cfg.OptGroup("standalone", title="The service in one process")

OPTS = [
    cfg.StrOpt(
        "state_dir", default="state",
        help="Directory of the embedded database and of the file by which the command line "
             "finds the service."),
]
