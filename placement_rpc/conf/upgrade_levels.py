# SPDX-License-Identifier: Apache-2.0
"""Options of rolling upgrades, during which different releases run at the same time."""

from oslo_config import cfg

GROUP = cfg.OptGroup("upgrade_levels", title="Rolling upgrades")

OPTS = [
    cfg.StrOpt(
        "placement", default="auto",
        help="Release whose messages this program sends: its name, or its version of the "
             "contract. A client then sends only what that release understands, and a conductor "
             "answers as that release does. With auto, a client uses the release of the oldest "
             "live conductor, and a conductor uses its own."),
    cfg.FloatOpt(
        "auto_interval", default=60.0, min=0.1,
        help="Seconds after which a client determines the oldest live conductor again. It does so "
             "at once if a conductor does not understand it. A higher number makes fewer calls, "
             "and a client uses a new release later after an upgrade."),
]
