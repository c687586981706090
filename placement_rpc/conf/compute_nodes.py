# SPDX-License-Identifier: Apache-2.0
"""Options of what becomes of a compute node's columns."""

from oslo_config import cfg

GROUP = cfg.OptGroup("compute_nodes", title="Compute nodes as providers")

OPTS = [
    cfg.StrOpt(
        "inventory_migration", default="auto", choices=[
            ("auto", "when every live service is of a release that knows of it"),
            ("always", "without looking who is alive"),
            ("never", "both places go on being written")],
        help="When what nodes have moves from their columns into inventories, and is written "
             "there alone."),
    cfg.FloatOpt(
        "cpu_allocation_ratio", default=16.0, min=0.0001,
        help="The ratio of VCPU of a node that has none of its own, or 0.0."),
    cfg.FloatOpt(
        "ram_allocation_ratio", default=1.5, min=0.0001,
        help="The ratio of MEMORY_MB of a node that has none of its own, or 0.0."),
    cfg.FloatOpt(
        "disk_allocation_ratio", default=1.0, min=0.0001,
        help="The ratio of DISK_GB of a node that has none of its own, or 0.0."),
    cfg.IntOpt(
        "reserved_cpus", default=0, min=0,
        help="Processors of a node that are not for its servers."),
    cfg.IntOpt(
        "reserved_memory_mb", default=512, min=0,
        help="MB of a node's memory that are not for its servers."),
    cfg.IntOpt(
        "reserved_disk_mb", default=0, min=0,
        help="MB of a node's disk that are not for its servers. Inventories are in GB: it is "
             "rounded up."),
    cfg.BoolOpt(
        "disk_available_least_is_max_unit", default=False,
        help="Whether a server may have no more disk than a node said is really free "
             "(disk_available_least)."),
    cfg.DictOpt(
        "pci_max_units", default={},
        help="The most devices of a class that one server may have, as PCI_SRIOV_VF:8. Any number "
             "of them where a class is not named."),
]
