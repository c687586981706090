# SPDX-License-Identifier: Apache-2.0
"""Options of ``placement-rpc standalone``, which runs the whole service in one process."""

from oslo_config import cfg

GROUP = cfg.OptGroup("standalone", title="The service in one process")

OPTS = [
    cfg.StrOpt(
        "state_dir", default="state",
        help="Directory of the embedded database, the log, and the file by which the command "
             "line finds the service."),
]
