# SPDX-License-Identifier: Apache-2.0
"""Options of compute nodes and of their migration to inventories."""

from oslo_config import cfg

GROUP = cfg.OptGroup("compute_nodes", title="Compute nodes as providers")

OPTS = [
    cfg.StrOpt(
        "inventory_migration", default="auto", choices=[
            ("auto", "as soon as every live service is of a release that supports it"),
            ("always", "regardless of the live services"),
            ("never", "columns and inventories are both written")],
        help="When the resources of compute nodes move from their columns to inventories, after "
             "which only inventories are written."),
    cfg.FloatOpt(
        "cpu_allocation_ratio", default=16.0, min=0.0001,
        help="Allocation ratio of VCPU for nodes that report none, or 0.0. A higher ratio allows "
             "more overcommitment."),
    cfg.FloatOpt(
        "ram_allocation_ratio", default=1.5, min=0.0001,
        help="Allocation ratio of MEMORY_MB for nodes that report none, or 0.0. A higher ratio "
             "allows more overcommitment."),
    cfg.FloatOpt(
        "disk_allocation_ratio", default=1.0, min=0.0001,
        help="Allocation ratio of DISK_GB for nodes that report none, or 0.0. A higher ratio "
             "allows more overcommitment."),
    cfg.IntOpt(
        "reserved_cpus", default=0, min=0,
        help="Processors of each node that are kept for the host and cannot be allocated."),
    cfg.IntOpt(
        "reserved_memory_mb", default=512, min=0,
        help="Memory of each node, in MB, that is kept for the host and cannot be allocated."),
    cfg.IntOpt(
        "reserved_disk_mb", default=0, min=0,
        help="Disk of each node, in MB, that is kept for the host and cannot be allocated. "
             "Inventories are in GB, so it is rounded up."),
    cfg.BoolOpt(
        "disk_available_least_is_max_unit", default=False,
        help="Whether the free disk space that a node reports (disk_available_least) is the "
             "maximum amount of disk in one allocation, which keeps servers off nodes whose disk "
             "is full in fact."),
    cfg.DictOpt(
        "pci_max_units", default={},
        help="Maximum number of PCI devices of a class in one allocation, for example "
             "PCI_SRIOV_VF:8. Classes that are not named have no maximum."),
]
