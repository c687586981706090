# SPDX-License-Identifier: Apache-2.0
"""The page for everybody: names for screen readers, contrast, narrow windows, light and dark."""

from tests import base
from tests.ui import fleets
from tests.ui.browser import PageTest

PAGES = ("overview", "providers", "live", "ask", "usage")

# Controls and pictures without an accessible name.
_NAMELESS = """
return [...document.querySelectorAll("input, select, textarea, button, a, #tree, #map, svg.bar")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.getAttribute("aria-label") || each.labels?.length
                      || each.textContent.trim()))
  .map((each) => each.outerHTML.slice(0, 120));
"""
# Texts whose contrast with what is behind them is below 4.5 to 1 (WCAG 2, AA).
_PALE = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgb(colour) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
}
function light(colour) {
  const [r, g, b] = [...rgb(colour)].slice(0, 3).map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function behind(element) {
  for (let each = element; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (rgb(colour)[3] === 255) return colour;
  }
  return "white";
}
const found = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !element.checkVisibility()) continue;
  if (element.closest("svg, script, noscript, option")) continue;
  const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) found.push(`${contrast.toFixed(2)} ${element.outerHTML.slice(0, 120)}`);
}
return found;
"""
# The contrast of the map's colour of a full provider with what is behind the map.
_MAP = _PALE.partition("const found")[0] + """
const [done] = arguments;
import("/ui/map.js").then(({ scale }) => {
  const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const [back, ...colours] = [behind(document.querySelector("#map")), ...scale()].map(light);
  done(contrast(colours.at(-1), back));
});
"""
_WIDTHS = "const root = document.documentElement; return [root.scrollWidth, root.clientWidth]"


class AccessibilityTest(PageTest):

    def setUp(self):
        super().setUp()
        facade = self.facade()
        hosts = fleets.small(facade.api)
        fleets.claim(facade.api, hosts[1], VCPU=120)
        base.wait_published(facade.database)
        self.host, self.url = hosts[1], facade.url

    def each_page(self):
        """Yield the names of all pages, each when it is shown."""
        for page in PAGES:
            self.go(page)
            if page == "providers":
                self.run_script("location.hash = arguments[0]", f"#providers/{self.host}")
                self.wait_text("#holders", "INSTANCE")
            elif page == "ask":
                self.click("#add-group")
                self.click("fieldset:last-child button")
                self.click("form button[type=submit]")
                self.wait("#funnel:not([aria-busy])")
            elif page == "usage":
                self.wait_text("#usage-table", "VCPU")
            yield page

    def test_names_and_contrast(self):
        self.load(self.url)
        self.assertEqual([], self.run_script(_NAMELESS) + self.run_script(_PALE))
        self.open(self.url)
        for theme in ("light", "dark"):
            self.click("#theme")
            self.wait_text("#theme", theme)
            for page in self.each_page():
                self.assertEqual([], self.run_script(_NAMELESS), page)
                self.assertEqual([], self.run_script(_PALE), f"{page}, {theme}")
                self.assertEqual(1, len(self.find("h1")), page)
                self.assertIn("placement_rpc", self.driver.title)
                # The keyboard and a screen reader go on with the page.
                self.assertTrue(self.run_script(
                    "return content.contains(document.activeElement)"), page)

    def test_full_providers_stand_out_on_the_map(self):
        self.open(self.url, "providers")
        for theme in ("light", "dark"):
            self.click("#theme")
            self.wait_text("#theme", theme)
            self.assertGreater(self.driver.execute_async_script(_MAP), 7)

    def test_a_narrow_window(self):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": False})
        self.open(self.url)
        for page in self.each_page():
            content, window = self.run_script(_WIDTHS)
            self.assertLessEqual(content, window, page)
