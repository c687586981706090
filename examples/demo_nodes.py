# SPDX-License-Identifier: Apache-2.0
"""The first part of the demo: 120 compute nodes migrate from nova's columns to inventories."""

import json
import pathlib
import subprocess
import sys
import time

import rich.progress

from placement_rpc.conf import service as configuration
from placement_rpc.db import api as db
from placement_rpc.db.queries import services
from placement_rpc.objects.nova.compute_node import ComputeNode

NODES = pathlib.Path(__file__).with_name("nova_compute_nodes.jsonl")

# The heartbeat of a conductor of the previous release.
_OLD = {"binary": "placement-rpc-conductor", "host": "conductor-old", "worker": 0}
_OLD_VERSIONS = {"version": "0.1.0", "rpc_version": "1.2"}


class Operator:
    """An operator with access to the database, who runs the programs.

    :param console: :class:`rich.console.Console`
    :param database: str, the address of the database
    :param directory: :class:`pathlib.Path`, for a configuration file
    """

    def __init__(self, console, database, directory):
        self._console = console
        self._file = directory / "operator.conf"
        self._file.write_text(f"[database]\nconnection = {database}\n")
        self._database = database

    def migrate(self):
        """Import the nodes as nova stores them, and migrate them to providers.

        :raises RuntimeError: if a program exits with an unexpected code
        """
        self._console.print("\n[bold]From nova's compute_nodes to inventories[/bold]")
        self._old_conductor(services.beat, _OLD_VERSIONS, True)
        self._run("manage", 0, "compute-nodes", "import", str(NODES), "--format", "table")
        self._console.print("A conductor of the previous release is still running:")
        self._run("status", None, "upgrade", "check")
        self._run("manage", 2, "db", "online_data_migrations", "--format", "table")
        self._console.print("It is stopped, and so the gate opens:")
        self._old_conductor(services.remove)
        began = time.monotonic()
        self._run("manage", 0, "db", "online_data_migrations", "--format", "table")
        self._console.print(f"That took {time.monotonic() - began:.1f} s. "
                            "No service needs the old columns any more:")
        self._run("manage", 0, "db", "contract")

    def _old_conductor(self, change, *arguments):
        database = db.Database(configuration.new_config(
            config_files=[], database__connection=self._database))
        try:
            database.write(lambda tx: change(tx, _OLD, *arguments))
        finally:
            database.close()

    def _run(self, program, code, *arguments):
        shown = " ".join(each.replace(str(NODES), NODES.name) for each in arguments)
        self._console.print(f"$ placement-rpc-{program} {shown}", style="dim", highlight=False)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", f"placement_rpc.cmd.{program}",
             "--config-file", str(self._file), *arguments],
            check=False, capture_output=True, text=True)
        self._console.print(
            (done.stdout + done.stderr).rstrip(), highlight=False, markup=False)
        if code is not None and done.returncode != code:
            raise RuntimeError(f"placement-rpc-{program} exited with {done.returncode}")


def sync(console, api):
    """Report the nodes to a service as their resource trackers do."""
    with NODES.open() as file:
        lines = file.readlines()
    for line in rich.progress.track(lines, "Synchronising compute nodes", console=console,
                                    transient=True, disable=not console.is_terminal):
        node = ComputeNode.read(json.loads(line))
        api.sync_compute_node(None, node, {}, time.time())


def names():
    """Return the nodes' hypervisor_hostname, a list of str."""
    with NODES.open() as file:
        return [json.loads(line)["nova_object.data"]["hypervisor_hostname"] for line in file]
