# SPDX-License-Identifier: Apache-2.0
"""The page with 10,000 providers."""

from placement_rpc.objects.claim import Claim
from tests import base
from tests.benchmarks import fleet
from tests.ui.browser import PageTest

_SIZE = 10_000
# Moves the pointer over the map, frame by frame; returns the median of the frames' milliseconds.
_MOVE = """
const map = document.querySelector("#map"), box = map.getBoundingClientRect(), done = arguments[0];
const times = [];
let last = performance.now();
function frame() {
  const now = performance.now();
  times.push(now - last);
  last = now;
  const at = { clientX: box.left + 20 * times.length, clientY: box.top + 5 * times.length };
  map.dispatchEvent(new MouseEvent("mousemove", at));
  if (times.length <= 40) requestAnimationFrame(frame);
  else done(times.sort((a, b) => a - b)[20]);
}
requestAnimationFrame(frame);
"""


class LargeFleetTest(PageTest):

    def test_map_and_tree(self):
        facade = self.facade()
        uuids = fleet.grow(facade.database, _SIZE)
        self.open(facade.url, "providers")
        self.wait_text("#found", "10,000 providers")
        self.wait(f"#map[data-cells='{_SIZE}']")
        self.assertLess(len(self.find("#tree .row")), 60)
        # An idle machine needs 17: a frame of 60 in a second.
        self.assertLess(self.driver.execute_async_script(_MOVE), 200)
        self.wait("#search").send_keys("node 9999")
        self.wait_text("#found", "1 of 10,000")
        facade.api.claim_batch(None, [Claim(
            consumer_uuid=base.new_uuid(), project_id="blue", user_id="ada",
            allocations={uuid: {"VCPU": 50_000}}) for uuid in uuids[:100]])
        self.go("overview")
        self.wait_text("#figures", "Claims in the last minute\n100")
        self.wait_text("#fullest", "50K")
