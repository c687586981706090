# SPDX-License-Identifier: Apache-2.0
"""The files of the page at ``/ui/`` as a server sends them; tests/ui has a browser."""

import importlib.resources
import re

import requests

import placement_rpc
from placement_rpc.testing.facade import Facade
from tests import base, http

_FILES = importlib.resources.files(placement_rpc) / "ui"


class FilesTest(http.HTTPTest):

    def test_the_page_needs_no_token(self):
        answer = self.send("GET", "/ui/", token=None)
        self.assertEqual(200, answer.status_code)
        self.assertEqual("text/html; charset=utf-8", answer.headers["content-type"])
        self.assertEqual((_FILES / "index.html").read_bytes(), answer.content)

    def test_nothing_can_be_loaded_from_elsewhere(self):
        for path in ("/ui/", "/ui/main.js", "/ui/style.css", "/ui/settings.json", "/ui/nothing"):
            headers = self.send("GET", path, token=None).headers
            policy = dict(part.split(" ", 1) for part in
                          headers["content-security-policy"].split("; "))
            self.assertEqual("'none'", policy.pop("default-src"))
            self.assertLessEqual(set(policy.values()), {"'self'", "'none'", "'script'"})
            self.assertEqual("nosniff", headers["x-content-type-options"])
            self.assertEqual("no-referrer", headers["referrer-policy"])

    def test_the_page_has_no_scripts_and_styles_in_line(self):
        page = (_FILES / "index.html").read_text()
        self.assertEqual([], re.findall(
            r"<style|\bstyle=|\bon[a-z]+=|<script(?![^>]* src=)", page))
        for name in re.findall(r'(?:src|href)="([^#"]+)"', page):
            self.assertEqual(200, self.send("GET", f"/ui/{name}", token=None).status_code, name)

    def test_each_import_of_a_script_is_there(self):
        for script in (each for each in _FILES.iterdir() if each.name.endswith(".js")):
            for name in re.findall(r'from "\./([^"]+)"', script.read_text()):
                answer = self.send("GET", f"/ui/{name}", token=None)
                self.assertEqual(200, answer.status_code, f"{script.name} imports {name}")
                self.assertEqual("text/javascript; charset=utf-8", answer.headers["content-type"])

    def test_no_script_makes_elements_of_text(self):
        for script in (each for each in _FILES.iterdir() if each.name.endswith(".js")):
            self.assertNotRegex(script.read_text(), "innerHTML|insertAdjacentHTML|eval[(]|Storage")

    def test_a_copy_that_is_current(self):
        tag = self.send("GET", "/ui/main.js").headers["etag"]
        answer = self.send("GET", "/ui/main.js", If_None_Match=tag)
        self.assertEqual(304, answer.status_code)
        self.assertEqual(b"", answer.content)
        self.assertEqual(tag, answer.headers["etag"])
        self.assertEqual("no-cache", answer.headers["cache-control"])
        self.assertEqual(200, self.send("GET", "/ui/main.js", If_None_Match='"x"').status_code)

    def test_methods(self):
        self.assertEqual(b"", self.send("HEAD", "/ui/").content)
        for method in ("POST", "PUT", "DELETE"):
            answer = self.send(method, "/ui/")
            self.assertEqual((405, "GET, HEAD"), (answer.status_code, answer.headers["allow"]))

    def test_addresses(self):
        answer = self.send("GET", "/ui", token=None)
        self.assertEqual((308, "ui/"), (answer.status_code, answer.headers["location"]))
        for path in ("/ui/nothing", "/ui/../setup.cfg", "/ui//etc/passwd", "/ui/vendor",
                     "/ui/vendor/", "/ui/index.html/", "/ui/%2e%2e/conf/http.py", "/ui/auth"):
            self.assertEqual(404, self.send("GET", path, token=None).status_code, path)
        # Not below the address of the page.
        self.assertEqual(401, self.send("GET", "/uix", token=None).status_code)

    def test_settings(self):
        self.assertEqual({"login": "name", "release": placement_rpc.__version__},
                         self.get("/ui/settings.json", token=None))

    def test_libraries_have_their_licence(self):
        for library in (_FILES / "vendor").iterdir():
            self.assertIn("Permission is hereby granted", (library / "LICENSE").read_text())


class SwitchedOffTest(http.HTTPTest):

    options = {"api__ui": False}

    def test_there_is_nothing(self):
        for path in ("/ui", "/ui/", "/ui/main.js", "/ui/auth"):
            self.assertEqual(404, self.send("GET", path).status_code, path)


class ServerTest(base.TestCase):

    def test_over_a_socket(self):
        facade = self.useFixture(Facade())
        answer = requests.get(f"{facade.url}/ui", timeout=30)
        self.assertEqual(f"{facade.url}/ui/", answer.url)
        self.assertIn("<main", answer.text)
