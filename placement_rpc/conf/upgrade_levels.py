# SPDX-License-Identifier: Apache-2.0
"""Options of running releases side by side."""

from oslo_config import cfg

GROUP = cfg.OptGroup("upgrade_levels", title="Releases side by side")

OPTS = [
    cfg.StrOpt(
        "placement", default="auto",
        help="The release that this program keeps to on the bus: a release's name, or its "
             "version of the contract. A client says nothing that this release does not know; a "
             "conductor answers as this release does. auto: a client keeps to the oldest of the "
             "live conductors, and a conductor answers in its own release."),
    cfg.FloatOpt(
        "auto_interval", default=60.0, min=0.1,
        help="Seconds after which a client looks again for the oldest of the live conductors. "
             "It looks at once when one does not understand it."),
]
