# SPDX-License-Identifier: Apache-2.0
"""Read requests in access logs of several formats."""

import collections
import gzip
import io
import json
import time

import hypothesis
import requests
from hypothesis import strategies

from placement_rpc.moving import access_log
from placement_rpc.moving.access_log import Logged, Request
from placement_rpc.moving.request_sample import RequestSample
from tests import base

_UUID = "4cae2ef8-30eb-4571-80c3-3289e86bd65c"
_CANDIDATES = "/allocation_candidates?limit=1000&resources=VCPU%3A1%2CMEMORY_MB%3A512"

# Name to a line and what it says: target, microversion, status.
_LINES = {
    "combined": (
        f'192.0.2.1 - nova [23/Nov/2026:05:30:28 +0000] "GET /placement{_CANDIDATES} HTTP/1.1" '
        '200 1234 "-" "nova-scheduler keystoneauth1/5.18 python-requests/2.34"',
        (_CANDIDATES, None, 200)),
    "common": ('::1 - - [23/Nov/2026:05:30:28 +0000] "GET /usages?project_id=p HTTP/1.1" 404 9',
               ("/usages?project_id=p", None, 404)),
    "combined with the header and a time": (
        '192.0.2.1 - - [x] "GET /traits HTTP/2" 200 1234 "-" "curl/8.1" "placement 1.17" 312',
        ("/traits", "1.17", 200)),
    "virtual host before, and a whole address": (
        'ctl:443 192.0.2.1 - - [x] "GET https://ctl/placement/traits#top HTTP/1.1" 200 1 "-" "-"',
        ("/traits", None, 200)),
    "syslog and haproxy": (
        "<30>Nov 23 05:30:28 lb haproxy[7]: 192.0.2.1:5 [x] in out/ctl1 0/0/0/14/14 200 812 - - "
        '---- 2/2/0/0/0 0/0 "GET /placement/resource_classes HTTP/1.1"',
        ("/resource_classes", None, None)),
    "uwsgi": (
        "[pid: 12|app: 0|req: 7/9] 192.0.2.1 () {40 vars in 500 bytes} [Mon Nov 23 05:30:28 2026] "
        f"GET /resource_providers?in_tree={_UUID} => generated 100 bytes in 5 msecs "
        "(HTTP/1.1 201) 6 headers in 200 bytes (1 switches on core 0)",
        (f"/resource_providers?in_tree={_UUID}", None, 201)),
    "request log of Placement": (
        "2026-11-23 05:30:28.123 12 INFO placement.requestlog [req-1 req-2 - - - -] 192.0.2.1 "
        f'"GET /placement/resource_providers/{_UUID}/inventories" status: 200 len: 100 '
        "microversion: 1.26", (f"/resource_providers/{_UUID}/inventories", "1.26", 200)),
    "request log, whose path is decoded": (
        '192.0.2.1 "GET /traits/CUSTOM 50%é" status: 404 len: - microversion: 1.6',
        ("/traits/CUSTOM%2050%25%C3%A9", "1.6", 404)),
    "json with fields": (json.dumps({
        "method": "GET", "path": "/placement/usages", "args": "project_id=p", "status": 200,
        "openstack_api_version": "placement 1.38"}), ("/usages?project_id=p", "1.38", 200)),
    "json with a request": (json.dumps({
        "request": "GET /traits/CUSTOM_A HTTP/1.1", "status": "204"}),
        ("/traits/CUSTOM_A", None, 204)),
    "json of a container within json": (json.dumps({"log": json.dumps({
        "message": '192.0.2.1 "GET /traits" status: 200 len: 9 microversion: 1.6'}) + "\n"}),
        ("/traits", "1.6", 200)),
    "plain": (f"GET {_CANDIDATES}", (_CANDIDATES, None, None)),
    "plain with a microversion": ("GET /traits 1.6", ("/traits", "1.6", None)),
    "escapes of apache": (
        r'192.0.2.1 - - [x] "GET /resource_providers?name=\"a\xc3\xa9 HTTP/1.1" 200 1 "-" "-"',
        ('/resource_providers?name="a%c3%a9', None, 200)),
    "an agent that looks like a request": (
        '192.0.2.1 - - [x] "GET /traits HTTP/1.1" 200 1 "-" "GET /usages HTTP/1.1"',
        ("/traits", None, 200)),
}

# Name to a line of which no request is taken, and the attribute that counts it.
_OTHERS = {
    "a change": ('192.0.2.1 - - [x] "PUT /allocations/a HTTP/1.1" 204 0 "-" "-"', "others"),
    "another service": ('192.0.2.1 - - [x] "GET /v2.1/servers HTTP/1.1" 200 9 "-" "-"', "foreign"),
    "allocations of ironic": (
        '192.0.2.1 - - [x] "GET /v1/allocations/a HTTP/1.1" 200 9', "foreign"),
    "the root": ('192.0.2.1 - - [x] "GET / HTTP/1.1" 200 9 "-" "-"', "foreign"),
    "events of this service": ('192.0.2.1 - - [x] "GET /events HTTP/1.1" 200 9', "foreign"),
    "a slash too many": ('192.0.2.1 - - [x] "GET /traits/ HTTP/1.1" 404 9', "foreign"),
    "cut off": (f'192.0.2.1 - - [x] "GET {_CANDIDATES[:30]}', "cut_off"),
    "the beginning of a request": (
        '12 DEBUG placement.requestlog [req-1] Starting request: 192.0.2.1 "GET /traits"',
        "without_request"),
    "another line of the log": ("12 INFO placement [-] Started", "without_request"),
    "a handshake": (r'192.0.2.1 - - [x] "\x16\x03\x01" 400 0 "-" "-"', "without_request"),
    "no method": ('192.0.2.1 - - [x] "BREW /traits HTTP/1.1" 405 0', "without_request"),
    "nothing": ("", "without_request"),
    "no json": ('{"request": "GET /traits HTTP/1.1"', "without_request"),
    "deep json": ('{"a":' * 50_000, "without_request"),
    "another value": ('{"request": ["GET /traits"], "message": 5}', "without_request"),
    "digits that are none": ("GET /traits \N{ARABIC-INDIC DIGIT ONE}.6", "without_request"),
}


def _read(data, *prefixes):
    log = access_log.AccessLog(prefixes)
    return log, list(log.read(io.BufferedReader(io.BytesIO(data))))


class AccessLogTest(base.TestCase):

    def test_formats(self):
        for name, (line, (target, version, status)) in _LINES.items():
            for end in ("", "\n", "\r\n"):
                log, found = _read((line + end).encode())
                self.assertEqual([Logged(Request(target, version), status)], found, name)
                self.assertEqual((1, 1), (log.lines, log.reads))

    def test_other_lines_are_counted(self):
        for name, (line, counted) in _OTHERS.items():
            log, found = _read(f"{line}\n".encode())
            counts = {each: getattr(log, each) for each in (
                "reads", "foreign", "cut_off", "without_request", "others")}
            self.assertEqual([], found, name)
            self.assertEqual({each: (collections.Counter(PUT=1) if each == "others" else 1)
                              if each == counted else type(counts[each])()
                              for each in counts}, counts, name)

    def test_all_in_one_file_and_compressed(self):
        lines = [line for line, _ in (*_LINES.values(), *_OTHERS.values())]
        # A file of many lines, some of which are not text, and one that is too long.
        data = b"\n".join((b"\xff\xfe\x00\n\x00\x00", *(line.encode() for line in lines),
                           b'"GET /traits' + b"a" * (1 << 20) + b' HTTP/1.1" 200 1',
                           b'1 - - [x] "GET /traits/CUSTOM_LAST HTTP/1.1" 200 1'))
        for given in (data, gzip.compress(data)):
            log, found = _read(given)
            self.assertEqual(len(_LINES) + 1, len(found))
            self.assertEqual("/traits/CUSTOM_LAST", found[-1].request.target)
            self.assertEqual(len(lines) + 4, log.lines)
        error = self.assertRaises(OSError, _read, gzip.compress(data)[:-100])
        self.assertIn("lines", str(error))

    def test_prefixes(self):
        lines = b"GET /cloud/7/placement/traits\nGET /placement/traits\nGET /traits\n"
        self.assertEqual(2, len(_read(lines)[1]))
        _, found = _read(lines, "/cloud/7/placement/")
        self.assertEqual([Request("/traits")] * 3, [each.request for each in found])

    def test_kinds(self):
        for target, kind in (
                (_CANDIDATES, "/allocation_candidates"),
                (f"/resource_providers/{_UUID}", "/resource_providers/{provider}"),
                (f"/resource_providers/{_UUID}/inventories/VCPU",
                 "/resource_providers/{provider}/inventories/{inventory}"),
                (f"/allocations/{_UUID}", "/allocations/{consumer}"),
                ("/traits/CUSTOM_A", "/traits/{trait}"), ("/traits?name=in:A", "/traits"),
                ("/resource_classes/VCPU", "/resource_classes/{class}")):
            self.assertEqual(kind, Request(target).kind)

    @hypothesis.settings(max_examples=base.examples(200), deadline=None)
    @hypothesis.given(strategies.one_of(
        strategies.binary(max_size=300),
        strategies.tuples(strategies.sampled_from([line for line, _ in _LINES.values()]),
                          strategies.integers(0, 300), strategies.binary(max_size=9)).map(
            lambda each: each[0].encode()[:each[1]] + each[2] + each[0].encode()[each[1]:]),
        strategies.text().map(lambda text: json.dumps(
            {"method": "GET", "path": f"/traits/{text}"}).encode())))
    def test_any_line(self, data):
        """No line raises an error, and each request that is found can be sent."""
        # What begins as a compressed file does is read as one.
        hypothesis.assume(not data.startswith(b"\x1f\x8b"))
        log, found = _read(data)
        self.assertEqual(log.reads, len(found))
        for each in found:
            self.assertTrue(each.request.target.isascii() and each.request.target.isprintable())
            requests.Request("GET", "http://127.0.0.1" + each.request.target, headers={
                "OpenStack-API-Version": f"placement {each.request.microversion}"}).prepare()

    def test_hostile_lines_cost_no_more_than_others(self):
        size = 30_000
        for line in (rf'"GET /{"x" * 9}\"GET /' * size, '"GET /' * size, '{"log":"' * size,
                     "GET / => generated (HTTP/1.1 2" * (size // 4), '\\"GET /' * size,
                     '"GET /traits HTTP/1.1" ' + " 20" * size):
            began = time.process_time()
            _read(line.encode()[:200_000])
            self.assertLess(time.process_time() - began, 2, line[:30])


class RequestSampleTest(base.TestCase):

    def test_all_of_them(self):
        sample = RequestSample(10)
        for number in range(30):
            sample.add(Logged(Request(f"/traits/CUSTOM_{number % 5}"), 200 + number % 2))
        found = sample.requests()
        self.assertEqual({f"/traits/CUSTOM_{number}" for number in range(5)},
                         {each.request.target for each in found})
        self.assertEqual({(6, frozenset({200, 201}))},
                         {(each.times, each.statuses) for each in found})

    def test_a_part_of_each_kind(self):
        """The same part whatever the order is, with exact counts; rare kinds are there."""
        logged = [Logged(Request(f"/allocations/{number}"), None)
                  for number in range(1000) for _ in range(1 + number % 3)]
        rare = Logged(Request("/traits"), 200)
        samples = []
        for lines in ([*logged, rare], [rare, *reversed(logged)], [*logged[::2], *logged[1::2]]):
            sample = RequestSample(20)
            for each in lines:
                sample.add(each)
            samples.append([each for each in sample.requests() if each.request != rare.request])
            self.assertEqual(20, len(samples[-1]))
            self.assertEqual(20 + (rare in lines), len(sample.requests()))
        self.assertEqual(samples[0], samples[1])
        self.assertEqual(samples[0], samples[2])
        for each in samples[0]:
            self.assertEqual(1 + int(each.request.target.rpartition("/")[2]) % 3, each.times)

    def test_microversions_are_different_requests(self):
        sample = RequestSample(10)
        for version in (None, "1.6", "1.7"):
            sample.add(Logged(Request("/traits", version), 200))
        self.assertEqual(3, len(sample.requests()))
