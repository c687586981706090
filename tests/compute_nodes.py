# SPDX-License-Identifier: Apache-2.0
"""Compute nodes that nova's own code serialized, and their inventories by the specification."""

import copy
import json
import pathlib

from placement_rpc.db.queries import compute_nodes as queries

_NODES = pathlib.Path(__file__).parents[1] / "examples" / "nova_compute_nodes.jsonl"


def nodes():
    """Return the 120 nodes, as nova's own code serialised them."""
    with _NODES.open() as file:
        return [json.loads(line) for line in file]


def without_id(sent):
    """Return a copy of a node as it is before the database has given it an id."""
    new = copy.deepcopy(sent)
    del new["nova_object.data"]["id"]
    changes = new.get("nova_object.changes", [])
    if "id" in changes:
        changes.remove("id")
    return new


def independently(sent):
    """Compute the inventories by the specification, directly from the message."""
    data = sent["nova_object.data"]
    rows = {}
    for name, total, reserved, ratio, default in (
            ("VCPU", data["vcpus"], 0, data.get("cpu_allocation_ratio"), 16.0),
            ("MEMORY_MB", data["memory_mb"], 512, data.get("ram_allocation_ratio"), 1.5),
            ("DISK_GB", data["local_gb"], 0, data.get("disk_allocation_ratio"), 1.0)):
        if total > 0:
            rows[name] = (total, reserved, total, ratio if ratio else default)
    devices = {}
    for pool in data["pci_device_pools"]["nova_object.data"]["objects"]:
        pool = pool["nova_object.data"]
        name = {"type-PCI": "PCI_DEVICE", "type-PF": "CUSTOM_PCI_SRIOV_PF",
                "type-VF": "SRIOV_NET_VF"}[pool["tags"]["dev_type"]]
        devices[name] = devices.get(name, 0) + pool["count"]
    rows.update({name: (count, 0, count, 1.0) for name, count in devices.items() if count})
    cells = [cell["nova_object.data"] for cell in json.loads(
        data["numa_topology"])["nova_object.data"]["cells"]]
    threads = [len(cell["cpuset"]) + len(set(cell.get("pcpuset", ())) - set(cell["cpuset"]))
               for cell in cells]
    # A thread without siblings is a core of its own.
    cores = [len(cell["siblings"]) or number for cell, number in zip(cells, threads, strict=True)]
    memory = [cell["memory"] for cell in cells]
    rows["NUMA_SOCKET"] = (len(cells), 0, 1, 1.0)
    for name, amounts in (("NUMA_CORE", cores), ("NUMA_THREAD", threads),
                          ("NUMA_MEMORY_MB", memory)):
        rows[name] = (sum(amounts), 0, max(amounts), 1.0)
    return rows


def store_rows(database, *rows):
    """Store nodes as an import of release 2026.2 did, which checked less.

    :param rows: dicts of column to value
    """
    columns = {name: None for name in (*queries.COLUMNS, *queries.CAPACITY)
               if name not in ("id", "created_at", "updated_at")}
    database.write(lambda tx: queries.insert_many(tx, [{**columns, **row} for row in rows]))
