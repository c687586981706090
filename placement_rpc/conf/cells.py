# SPDX-License-Identifier: Apache-2.0
"""Options of each cell: a group ``[cell:NAME]`` for each name in ``[placement_client] cells``."""

from oslo_config import cfg

#: How the names of the groups begin.
PREFIX = "cell:"
#: The group of the sample file.
GROUP = cfg.OptGroup(f"{PREFIX}example", title="A cell, if there are several")

OPTS = [
    cfg.StrOpt(
        "transport_url", secret=True,
        help="The broker and the virtual host of the cell's service, as DEFAULT transport_url. "
             "Options of [oslo_messaging_rabbit] that differ between cells can stand in its query."
             ),
    cfg.StrOpt(
        "region",
        help="The region in which the cell is. CellsAPI.only(region=...) has the calls of the "
             "cells of one region."),
    cfg.ListOpt(
        "aggregates", default=[],
        help="UUIDs of the aggregates whose providers are in this cell. A find that is limited to "
             "listed aggregates by member_of asks only the cells that list them; for any other "
             "aggregate, all cells are asked. An aggregate may be listed by several cells."),
]


def register(conf, name):
    """Register the options of a cell, and return its group of options.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param name: str, the name of the cell
    """
    group = PREFIX + name
    conf.register_group(cfg.OptGroup(group))
    conf.register_opts(OPTS, group=group)
    return conf[group]
