# SPDX-License-Identifier: Apache-2.0
"""Each page in a browser: what it shows, and what happens to it."""

import socket

from placement_rpc import exception
from placement_rpc.objects.inventory import capacity_of
from tests import base
from tests.integration.proxy import Proxy
from tests.ui import fleets
from tests.ui.browser import PageTest


class CapacityTest(PageTest):

    def test_it_is_that_of_the_service(self):
        self.load(self.facade().url)
        cases = [(total, reserved, ratio)
                 for total, reserved in ((100, 0), (1, 0), (7, 2), (2 ** 31 - 1, 1), (4, 8))
                 for ratio in (0.29, 1.0, 1.5, 16.0, 0.1, 1e-7, 3e-05, 1e21, 1e300, 1 / 3)]
        found = self.driver.execute_async_script("""
            const [cases, done] = arguments;
            import("/ui/fleet.js").then(({ capacity }) => done(cases.map(
              ([total, reserved, allocation_ratio]) =>
                capacity({ total, reserved, allocation_ratio }))));
            """, cases)
        # As floating point numbers, which are all that JavaScript has. None is below 0.
        self.assertEqual([float(max(0, capacity_of(*case))) for case in cases],
                         list(map(float, found)))


class OverviewTest(PageTest):

    def test_numbers(self):
        facade = self.facade()
        hosts = fleets.small(facade.api)
        fleets.claim(facade.api, hosts[3], VCPU=64, MEMORY_MB=4096)
        base.wait_published(facade.database)
        self.open(facade.url)
        self.wait_text("#classes", "VCPU", "768", "64", "8 %", "MEMORY_MB", "VGPU")
        self.wait_text("#figures", "Providers\n9")
        self.wait_text("#aggregates", *fleets.AGGREGATES)
        self.wait("#history canvas")
        self.choose("#fullest-class", "MEMORY_MB")
        self.assertIn("host3", self.text("#fullest tbody tr"))
        self.click("#fullest tbody a")
        self.wait_text("#details", "host3", "INSTANCE", "VCPU 64")

    def test_an_empty_store(self):
        self.open(self.facade().url)
        self.wait_text("#classes", "No provider has an inventory yet")
        self.go("providers")
        self.wait_text("#found", "0 providers")

    def test_changes_appear_by_themselves(self):
        facade = self.facade()
        host = fleets.small(facade.api, 2)[0]
        self.open(facade.url)
        self.wait_text("#connection", "Live")
        fleets.claim(facade.api, host, VCPU=64)
        self.wait_text("#figures", "Claims in the last minute\n1")
        self.wait_text("#classes", "64", "25 %")
        self.assertRaises(exception.CapacityExceeded, fleets.claim, facade.api, host, VCPU=65)
        self.wait_text("#figures", "Refused claims\n1")
        new = facade.api.create_provider(None, "another").uuid
        self.wait_text("#figures", "Providers\n4")
        facade.api.set_inventory(None, new, [base.inventory("PCPU", 7)])
        self.wait_text("#classes", "PCPU")
        facade.api.delete_provider(None, new)
        self.wait_text("#figures", "Providers\n3")


class ProvidersTest(PageTest):

    def test_tree_and_details(self):
        facade = self.facade()
        hosts = fleets.small(facade.api)
        fleets.claim(facade.api, hosts[1], MEMORY_MB=4096)
        base.wait_published(facade.database)
        self.open(facade.url, "providers")
        self.wait_text("#tree", "host0", "host1-card", "host5")
        self.type_search("card")
        self.wait_text("#found", "6 of 9")
        self.click("#tree .row:nth-child(2)")
        self.wait_text("#details", "host1-card", "VGPU", "HW_GPU_API_VULKAN", "Parent")
        self.click("#details .chips a")
        self.wait_text("#details", "host1", fleets.AGGREGATES[1], "MEMORY_MB 4,096", "blue")
        fleets.claim(facade.api, hosts[1], project="red", VCPU=3)
        self.wait_text("#holders", "red", "VCPU 3")

    def type_search(self, text):
        self.wait("#search").send_keys(text)

    def test_long_names_and_names_from_right_to_left(self):
        facade = self.facade()
        long = fleets.provider(facade.api, "x" * 200, VCPU={"total": 8})
        name = "\u05e9\u05dc\u05d5\u05dd"
        fleets.claim(facade.api, fleets.provider(facade.api, name, VCPU={"total": 64}), VCPU=12)
        self.open(facade.url, f"providers/{long}")
        self.wait_text("#details h2", "x" * 200)
        self.assertTrue(self.run_script("""
            const page = document.documentElement;
            return page.scrollWidth <= page.clientWidth"""))
        self.press("#map", "Home", "ArrowRight")
        self.wait_text("#map-cell", f"{name}: 12 of 64")
        # From left to right: the name, and then the number.
        self.assertTrue(self.run_script("""
            const [name, text] = document.querySelector("#map-cell").childNodes;
            const number = document.createRange();
            number.setStart(text, 2);
            number.setEnd(text, 4);
            return name.getBoundingClientRect().right <= number.getBoundingClientRect().left"""))

    def test_an_address_that_names_nothing(self):
        self.open(self.facade().url, "providers/%")
        self.wait_text("#details", "There is no provider %.")
        self.run_script("location.hash = '#constructor'")
        self.wait_text("h1", "Overview")

    def test_without_a_mouse(self):
        facade = self.facade()
        fleets.small(facade.api)
        self.open(facade.url, "providers")
        self.wait_text("#tree", "host5")
        self.press("#tree", "Home", "ArrowDown")
        self.wait_text("#details h2", "host1")
        self.press("#tree", "ArrowLeft")
        base.wait_until(lambda: "host1-card" not in self.text("#tree"))
        self.assertEqual("false", self.wait("#tree [aria-selected=true]").get_attribute(
            "aria-expanded"))
        self.press("#tree", "ArrowRight", "ArrowDown")
        self.wait_text("#details h2", "host1-card")
        self.choose("#map-class", "VGPU")
        self.press("#map", "ArrowRight", "ArrowRight")
        self.wait_text("#map-cell", "host3: no VGPU")
        self.press("#map", "ArrowRight", "Enter")
        self.wait_text("#details h2", "host3-card")

    def press(self, selector, *keys):
        """Press keys where the keyboard then is."""
        self.run_script("document.querySelector(arguments[0]).focus()", selector)
        for key in keys:
            for kind in ("keyDown", "keyUp"):
                self.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {
                    "type": kind, "key": key, "code": key})
            # The address changes, and the page with it, after the key's event.
            self.run_script("return new Promise((done) => setTimeout(done, 50))")


class RightsTest(PageTest):

    fails = True

    def test_a_user_without_rights(self):
        facade = self.facade()
        fleets.small(facade.api, 2)
        self.open(facade.url, name="ada")
        self.wait_text(".notice", "placement:provider_summaries:list")
        self.wait_text("#project", "placement:usages")
        for page in ("providers", "live"):
            # Nothing that looks like an answer.
            self.go(page)
            self.wait_text("#content h1", page.title())
            self.assertEqual([], self.find("#content section"))
        self.go("overview")
        self.click("#leave")
        self.type("user", "admin")
        self.click("form button")
        self.wait_text("#classes", "VCPU")


class LostServerTest(PageTest):

    fails = True

    def test_the_page_goes_on_where_it_was(self):
        facade = self.facade()
        host = fleets.small(facade.api, 1)[0]
        port = int(facade.url.rpartition(":")[2])
        proxy = self.useFixture(Proxy(port))
        self.open(f"http://127.0.0.1:{proxy.port}")
        self.wait_text("#connection", "Live")
        with socket.socket() as nobody:
            # Bound and not listening: connections are refused, as those to a dead server.
            nobody.bind(("127.0.0.1", 0))
            proxy.switch(nobody.getsockname()[1])
            self.wait_text("#connection", "Connection lost")
            fleets.claim(facade.api, host, VCPU=64)
            proxy.switch(port)
        self.wait_text("#connection", "Live")
        self.wait_text("#classes", "64", "50 %")
        self.wait_text("#figures", "Claims in the last minute\n1")

    def test_a_server_that_is_away_at_the_login(self):
        facade = self.facade()
        proxy = self.useFixture(Proxy(int(facade.url.rpartition(":")[2])))
        self.load(f"http://127.0.0.1:{proxy.port}")
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            proxy.switch(nobody.getsockname()[1])
            self.click("form button")
            self.wait_text("#login-message", "does not answer")
