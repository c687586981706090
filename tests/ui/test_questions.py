# SPDX-License-Identifier: Apache-2.0
"""The page Ask: its answers, and its lines for other programs, which are run."""

import json
import shlex
import subprocess

from placement_rpc import api
from tests import base
from tests.functional.test_osc_program import Openstack
from tests.ui import fleets
from tests.ui.browser import PageTest

# Whether the page has read all providers a second time.
_READ_TWICE = """return performance.getEntriesByType("resource").filter(
  (each) => each.name.includes("/provider_summaries")).length > 1"""


class QuestionCase(PageTest):

    def setUp(self):
        super().setUp()
        self.running = self.facade()
        self.hosts = fleets.small(self.running.api)
        fleets.claim(self.running.api, self.hosts[0], VCPU=120)
        self.open(self.running.url, "ask")

    def ask(self, **fields):
        """Fill fields and ask; wait for all answers."""
        for name, text in fields.items():
            self.type(name, text)
        self.click("form button[type=submit]")
        for name in ("candidates", "headroom", "funnel"):
            self.wait(f"#{name}:not([aria-busy])")


class OddQuestionTest(QuestionCase):

    # No trait has such a name: the service refuses the requests.
    fails = True

    def test_odd_characters_in_lines(self):
        self.ask(resources="VCPU:1", required="NO_SUCH&x=#1;'ls'")
        curl, openstack, _ = (self.run_script("return arguments[0].textContent", each)
                              for each in self.find("#lines pre"))
        self.assertIn("required=NO_SUCH%26x%3D%231%3B", curl)
        self.assertEqual([["--required", "NO_SUCH&x=#1;'ls'"]] * 3,
                         [shlex.split(line)[-2:] for line in openstack.splitlines()])


    def test_filters_without_an_amount_are_sent_too(self):
        """The service says what is wrong with them."""
        self.click("#add-group")
        self.ask(resources="", forbidden="HW_GPU_API_VULKAN", suffix1="-x", resources1="VCPU:1")
        self.wait_text("#candidates", "400", "Resourceless")
        curl, openstack, _ = (self.run_script("return arguments[0].textContent", each)
                              for each in self.find("#lines pre"))
        self.assertIn("required=!HW_GPU_API_VULKAN", curl)
        for line in openstack.splitlines():
            self.assertIn("--forbidden HW_GPU_API_VULKAN --group=-x --resource VCPU=1", line)


class QuestionTest(QuestionCase):

    def test_answers(self):
        self.ask(resources="VCPU:10 MEMORY_MB=1024")
        self.wait_text("#candidates", "5 of 5", "host1", "VCPU 10", "MEMORY_MB 1,024")
        # Of 640 free of five hosts 12 times 10 each; the sixth has 8 left.
        self.wait_text("#headroom", "60")
        self.wait_text("#funnel", "exist", "have 10 of VCPU left", "host0",
                       "8 of a capacity of 128 are free")
        # Candidates have no order.
        first = self.text("#candidates a")
        self.click("#candidates a")
        self.wait_text("#details h2", first)

    def test_groups(self):
        self.click("#add-group")
        self.ask(resources="VCPU:1", suffix1="_GPU", resources1="VGPU:2",
                 required1="HW_GPU_API_VULKAN|HW_GPU_API_VULKAN")
        self.wait_text("#candidates", "3 of 3", "host1-card: VGPU 2")
        self.wait_text("#headroom", "12")

    def test_nothing_fits(self):
        self.ask(resources="VCPU:1000")
        self.wait_text("#candidates", "No provider has room")
        self.wait_text("#headroom", "0")

    def test_what_cannot_be_read(self):
        self.type("resources", "two cores")
        self.click("form button[type=submit]")
        self.wait_text("#answer", "two is not a class and an amount")
        self.type("resources", f"VCPU:{2 ** 53}")
        self.click("form button[type=submit]")
        self.wait_text("#answer", "more than this page can ask for")

    def test_a_separator_alone_is_no_condition(self):
        self.ask(resources="VCPU:1", required="|")
        self.wait_text("#candidates", "6 of 6")

    def test_a_form_outlives_what_the_page_reads_again(self):
        self.type("resources", "VCPU:3")
        self.running.api.resource_class_create(None, "CUSTOM_ONE")
        self.running.api.resource_class_rename(None, "CUSTOM_ONE", "CUSTOM_TWO")
        base.wait_until(lambda: self.run_script(_READ_TWICE))
        self.assertEqual("VCPU:3", self.wait("[name=resources]").get_attribute("value"))
        self.ask()
        self.wait_text("#candidates", "VCPU 3")

    def test_lines_for_other_programs(self):
        self.click("#add-group")
        self.ask(resources="VCPU:10", suffix1="_GPU", resources1="VGPU:2",
                 required1="HW_GPU_API_VULKAN")
        curl, openstack, python = (
            self.run_script("return arguments[0].textContent", each)
            for each in self.find("#lines pre"))
        self.check_curl(curl)
        self.check_openstack(openstack)
        self.check_python(python)

    def check_curl(self, lines):
        done = subprocess.run(
            ["sh", "-c", f"set -eu\nexec 2>/dev/null\n{lines}"], check=True, text=True,
            capture_output=True, env={"OS_TOKEN": "admin", "PATH": "/usr/bin:/bin"})
        decoder, text, found = json.JSONDecoder(), done.stdout, []
        while text:
            value, end = decoder.raw_decode(text)
            found.append(value)
            text = text[end:]
        candidates, explained, headroom = found
        self.assertEqual(3, len(candidates["allocation_requests"]))
        self.assertEqual(3, sum(each["fits"] for each in explained["resource_providers"]))
        self.assertEqual(12, headroom["count"])

    def check_openstack(self, lines):
        openstack = self.useFixture(Openstack(self.running.url))
        explain, _, headroom = (shlex.split(line)[1:] for line in lines.splitlines())
        code, out, err = openstack(*explain, "-f", "json")
        self.assertEqual(0, code, err)
        self.assertEqual(3, sum(each["fits"] for each in json.loads(out)))
        code, out, err = openstack(*headroom, "-f", "json")
        self.assertEqual(12, json.loads(out)[0]["count"], err)

    def check_python(self, lines):
        """The imports, the request and the calls; the address of the broker is another."""
        *first, candidates, explain, headroom = lines.splitlines()
        source = "\n".join(line for line in first if not line.startswith("api = "))
        self.assertIn('api = PlacementAPI(transport_url="rabbit://', lines)
        names = {"api": self.running.api, "context": None}
        exec(source, names)
        self.assertIs(api.CandidatesRequest, names["CandidatesRequest"])
        eval(candidates, names)
        self.assertEqual(3, sum(each.fits for each in eval(explain, names).objects))
        self.assertEqual(12, eval(headroom, names).count)
