# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of the documentation: ``python -m tests.ui.pictures``."""

import pathlib
import random
import time

from placement_rpc import exception
from placement_rpc.testing.facade import Facade
from tests import base
from tests.ui import fleets
from tests.ui.browser import PageTest

_DIRECTORY = pathlib.Path(__file__).parents[2] / "docs" / "source" / "images"
_HOSTS, _CONSUMERS = 240, 700
# VCPU and MEMORY_MB
_FLAVORS = ((1, 2048), (2, 4096), (4, 8192), (8, 16384), (16, 65536))
_PROJECTS = ("web", "research", "build", "billing", "training")
_HOST = {"VCPU": {"total": 48, "allocation_ratio": 1.5},
         "MEMORY_MB": {"total": 262144, "reserved": 4096},
         "DISK_GB": {"total": 4000, "reserved": 100}}


def _fill(api, chance):
    """Create hosts, of which each eighth has two graphics cards; return their uuids."""
    aggregates = [base.new_uuid() for _ in range(6)]
    hosts = []
    for number in range(_HOSTS):
        host = fleets.provider(api, f"cmp{number:04}.example.org", **_HOST)
        api.set_aggregates(None, host, [aggregates[number * 6 // _HOSTS]])
        api.set_provider_traits(None, host, ["HW_CPU_X86_AVX2", "STORAGE_DISK_SSD"])
        for card in range(2 if number % 8 == 0 else 0):
            uuid = fleets.provider(
                api, f"cmp{number:04}.example.org:gpu{card}", host, VGPU={"total": 8})
            api.set_provider_traits(None, uuid, ["HW_GPU_API_VULKAN"])
        hosts.append(host)
    for _ in range(_CONSUMERS):
        _claim(api, chance, hosts)
    return hosts


def _claim(api, chance, hosts):
    vcpus, memory = chance.choice(_FLAVORS)
    # Some hosts are fuller than others.
    host = hosts[int(len(hosts) * chance.random() ** 1.7)]
    try:
        fleets.claim(api, host, project=chance.choice(_PROJECTS), VCPU=vcpus, MEMORY_MB=memory,
                     DISK_GB=20 * vcpus)
    except exception.CapacityExceeded:
        return


class PicturesTest(PageTest):
    """Not found by the runner of the tests: its module has no name of a test."""

    time_limit = 600

    def test_pictures(self):
        facade, chance = self.useFixture(Facade()), random.Random(7)
        hosts = _fill(facade.api, chance)
        base.wait_published(facade.database)
        self.open(facade.url)
        self.wait_text("#connection", "Live")
        ends = time.monotonic() + 45
        while time.monotonic() < ends:
            # A history that rises, for the chart.
            for _ in range(5):
                _claim(facade.api, chance, hosts)
            time.sleep(1)
        self.take("overview")
        self.go("providers")
        self.run_script("location.hash = arguments[0]", f"#providers/{hosts[8]}")
        self.wait_text("#holders", "INSTANCE")
        self.take("providers")
        self.go("live")
        self.wait_text("#events", "allocation.create")
        self.take("live")
        self.go("ask")
        self.type("resources", "VCPU:16 MEMORY_MB:131072")
        self.click("#add-group")
        self.type("resources1", "VGPU:8")
        self.click("form button[type=submit]")
        self.wait("#funnel:not([aria-busy])")
        self.take("ask")
        self.go("usage")
        self.wait_text("#usage-table", "research")
        self.wait("#usage-chart canvas")
        self.take("usage")

    def take(self, name):
        self.run_script("document.activeElement.blur()")
        self.driver.save_screenshot(str(_DIRECTORY / f"ui-{name}.png"))


if __name__ == "__main__":
    import testtools.run
    testtools.run.main(["pictures", f"{__spec__.name}.PicturesTest"], None)
