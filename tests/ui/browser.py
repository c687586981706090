# SPDX-License-Identifier: Apache-2.0
"""A real browser for the tests of the page: Debian's Chromium, without a window."""

import functools
import json
import re
import shutil
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from placement_rpc.testing.facade import Facade
from tests import base, keystone_server

_OPTIONS = (
    "--headless=new", "--window-size=1280,1000", "--force-device-scale-factor=1",
    # In containers there is no user namespace for it; only this project's page is opened.
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--no-first-run")
# An answer that is an error is written to the console by the browser itself.
_NETWORK = re.compile(r"Failed to load resource|net::ERR_")
_OWN = ("about", "data", "blob", "chrome", "chrome-untrusted", "devtools")


class Browser:
    """A running browser, which several tests use one after the other."""

    def setUp(self):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for option in _OPTIONS:
            options.add_argument(option)
        options.set_capability(
            "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(
            shutil.which("chromedriver")))

    def cleanUp(self):
        self.driver.quit()

    def clear(self):
        """Leave the page, and forget size, logs and everything else of the test before."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.console(), self.requests()

    def console(self):
        """Return what was written to the console since the last time: list of str."""
        return [f"{entry['level']} {entry['message']}"
                for entry in self.driver.get_log("browser")]

    def requests(self):
        """Return the addresses that were requested since the last time: list of str."""
        messages = (json.loads(entry["message"])["message"]
                    for entry in self.driver.get_log("performance"))
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]


@functools.cache
def shared():
    """Return this test process's browser; started when needed."""
    return keystone_server.started(Browser())


class PageTest(base.TestCase):
    """A test of the page: nothing is requested from elsewhere, and the console stays empty."""

    time_limit = 180
    #: Whether requests of the test fail on purpose, which the browser writes to the console
    fails = False

    def setUp(self):
        super().setUp()
        self.browser = shared()
        self.browser.clear()
        self.driver = self.browser.driver
        self.origin = None
        self.addCleanup(self._check_quiet)

    def _check_quiet(self):
        console, requested = self.browser.console(), self.browser.requests()
        self.assertEqual([], [line for line in console
                              if not (self.fails and _NETWORK.search(line))])
        elsewhere = [url for url in requested if urllib.parse.urlsplit(url).scheme not in _OWN
                     and not url.startswith(f"{self.origin}/")]
        self.assertEqual([], elsewhere)

    def facade(self, **options):
        """Start a service, and return the :class:`placement_rpc.testing.facade.Facade`."""
        return self.useFixture(Facade(**options))

    def open(self, url, page="", name="admin"):
        """Open a page of the service at an address, and log in by name."""
        self.load(url, page)
        self.type("user", name)
        self.click("form button")
        self.wait("header nav a")

    def load(self, url, page=""):
        """Open a page of the service at an address, which then asks for a login."""
        self.origin = url
        # Before the service ends: the page would try to reach it, and say so in the console.
        self.addCleanup(self.driver.get, "about:blank")
        self.driver.get(f"{url}/ui/#{page}")
        self.wait(".login form")

    def go(self, page):
        """Go to a page by its link, and wait until it is there."""
        self.click(f"nav a[href='#{page}']")
        self.wait(f"nav a[href='#{page}'][aria-current='page']")

    def find(self, selector):
        """Return the elements of a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def wait(self, selector):
        """Wait for an element of a CSS selector that is shown, and return it."""
        return base.wait_until(
            lambda: next((each for each in self.find(selector) if each.is_displayed()), None),
            message=lambda: f"There is no {selector} in: {self.text('body')}")

    def click(self, selector):
        self.wait(selector).click()

    def type(self, name, text):
        """Replace the text of the field with a name."""
        found = self.wait(f"[name='{name}']")
        found.clear()
        found.send_keys(text)

    def choose(self, selector, text):
        """Select an option by what it says."""
        Select(self.wait(selector)).select_by_visible_text(text)

    def text(self, selector):
        """Return the text of the first element; it may be replaced while it is read."""
        return self.driver.execute_script(
            "return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def wait_text(self, selector, *texts):
        """Wait until an element has all of some texts; return all that it has."""
        return base.wait_until(
            lambda: (found := self.text(selector)) and all(
                each in found for each in texts) and found,
            message=lambda: f"{selector} lacks one of {texts}: {self.text(selector)}")

    def run_script(self, script, *arguments):
        """Run a script in the page, and return what it returns."""
        return self.driver.execute_script(script, *arguments)
