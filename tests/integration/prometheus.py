# SPDX-License-Identifier: Apache-2.0
"""Prometheus with the configuration and the rules of ``etc/integration/prometheus``."""

import os
import pathlib
import re
import shutil

import requests

from placement_rpc.testing import server_process

FILES = pathlib.Path(__file__).parents[2] / "etc" / "integration" / "prometheus"
# Far below the 15 seconds of the file, so that a test need not wait for the second scrape.
_INTERVAL = "1s"
_TIMEOUT = 60


class Prometheus(server_process.ServerProcess):
    """A Prometheus server of its own; ``url`` is its address.

    :param targets: dict of each address of a target in the file to another address
    """

    _ready = "Server is ready to receive web requests"

    def __init__(self, targets):
        super().__init__()
        self._targets = targets

    def _setUp(self):
        super()._setUp()
        address = f"127.0.0.1:{server_process.reserve_port(self)}"
        self.url = f"http://{address}"
        text = re.sub(r"_interval: \w+", f"_interval: {_INTERVAL}",
                      (FILES / "prometheus.yml").read_text())
        # In one pass: an address that was put in may be one of the file.
        text = re.sub("|".join(map(re.escape, self._targets)),
                      lambda found: self._targets[found[0]], text)
        shutil.copy(FILES / "placement_rpc.rules.yml", self.tempdir)
        path = pathlib.Path(self.tempdir, "prometheus.yml")
        path.write_text(text)
        self._command = ("prometheus", f"--config.file={path}", f"--web.listen-address={address}",
                         f"--storage.tsdb.path={os.path.join(self.tempdir, 'data')}")
        self.start()

    def get(self, path, **parameters):
        """Return the ``data`` of an answer of Prometheus's HTTP API.

        :param path: str, below ``/api/v1/``
        """
        answer = requests.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=_TIMEOUT)
        answer.raise_for_status()
        return answer.json()["data"]

    def query(self, expression):
        """Return the present values of an expression, a list of tuples of labels and float."""
        return [(each["metric"], float(each["value"][1]))
                for each in self.get("query", query=expression)["result"]]

    def rules(self):
        """Return the rules of all groups, as Prometheus describes them: a list of dicts."""
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]
