# SPDX-License-Identifier: Apache-2.0
"""Requests for allocation candidates, at every microversion that has them."""

import uuid

from tests import base
from tests.conformance import wire
from tests.conformance.case import Case

_LAST = 39
# The microversions at which the answer to the same query changes.
_BORDERS = (12, 17, 27, 29, 34, 39)


class Cloud(wire.Names):
    """Trees of providers that alone have its classes.

    The compute nodes ``one`` and ``two`` share a ``storage``, and the second has a disk of its
    own, as has ``flat``, which is alone. Both have GPUs (``left``, ``right``) and a device with
    virtual functions (``net``), that of the first below the GPU on the right.
    """

    def __init__(self):
        mark = uuid.uuid4().hex.upper()
        (self.one, self.two, self.flat, self.storage, self.left, self.right, self.net, self.numa,
         self.other_left, self.other_net, self.shared, self.zone, self.rack, self.missing,
         self.consumer) = (str(uuid.uuid4()) for _ in range(15))
        self.cpu, self.mem, self.disk, self.gpu, self.vf, self.rare = (
            f"CUSTOM_{name}_{mark}" for name in ("CPU", "MEM", "DISK", "GPU", "VF", "RARE"))
        self.fast, self.is_left, self.is_right, self.is_net, self.is_numa, self.unused = (
            f"CUSTOM_{name}_{mark}" for name in (
                "FAST", "LEFT", "RIGHT", "NET", "NUMA", "UNUSED"))

    def requests(self):
        for name in (self.cpu, self.mem, self.disk, self.gpu, self.vf, self.rare):
            yield "1.7", "PUT", f"/resource_classes/{name}", None
        for name in (self.fast, self.is_left, self.is_right, self.is_net, self.is_numa,
                     self.unused):
            yield "1.6", "PUT", f"/traits/{name}", None
        host = {self.cpu: {"total": 8, "allocation_ratio": 2.0},
                self.mem: {"total": 1000, "reserved": 100}}
        local = {self.disk: {"total": 100, "min_unit": 10, "step_size": 10}}
        for provider, parent, inventories, traits, aggregates in (
                (self.one, None, host, [self.fast], [self.shared, self.zone]),
                (self.two, None, {**host, **local}, ["HW_CPU_X86_AVX2"], [self.shared]),
                (self.flat, None, {**host, **local}, [], [self.zone]),
                (self.storage, None, {self.disk: {"total": 1000}},
                 ["MISC_SHARES_VIA_AGGREGATE"], [self.shared]),
                (self.left, self.one, {self.gpu: {"total": 4}}, [self.is_left], [self.rack]),
                (self.right, self.one, {self.gpu: {"total": 4, "max_unit": 3}},
                 [self.is_right], []),
                (self.net, self.right, {self.vf: {"total": 8}}, [self.is_net], []),
                (self.numa, self.one, {}, [self.is_numa], [self.zone]),
                (self.other_left, self.two, {self.gpu: {"total": 2}}, [self.is_left], []),
                (self.other_net, self.two, {self.vf: {"total": 8}}, [self.is_net], [])):
            yield from self._provider(provider, parent, inventories, traits, aggregates)
        yield "1.28", "PUT", f"/allocations/{self.consumer}", {
            "allocations": {self.other_left: {"resources": {self.gpu: 1}}}, "project_id": "p",
            "user_id": "u", "consumer_generation": None}

    @staticmethod
    def _provider(provider, parent, inventories, traits, aggregates):
        path, body = f"/resource_providers/{provider}", {"name": provider, "uuid": provider}
        yield "1.14", "POST", "/resource_providers", {
            **body, **({"parent_provider_uuid": parent} if parent else {})}
        # First, since its generation is known only now.
        yield "1.6", "PUT", f"{path}/traits", {
            "traits": traits, "resource_provider_generation": 0}
        for name, values in inventories.items():
            yield "1.14", "POST", f"{path}/inventories", {"resource_class": name, **values}
        yield "1.1", "PUT", f"{path}/aggregates", aggregates


_HOST, _DEVICE = "resources=<cpu>:1,<mem>:100", "<gpu>:1"
_TWO = f"{_HOST}&resources1=<gpu>:1&resources2=<vf>:2"

# First microversion to the queries that are new in it.
_QUERIES = {
    10: (
        "resources=<cpu>:1", "resources=<cpu>:16", "resources=<cpu>:17", _HOST,
        "resources=<cpu>:1,<disk>:10", "resources=<cpu>:1,<disk>:15", "resources=<disk>:20",
        "resources=<mem>:901", "resources=<gpu>:4", "resources=<cpu>:1,<gpu>:1",
        "resources=<gpu>:1,<vf>:1", "resources=<rare>:1", "resources=<cpu>:1,<rare>:1",
        "resources=<cpu>:99&resources=<cpu>:3", "resources=<cpu>:%2B1", "resources=<cpu>:1_0",
        "resources=<cpu>: 1", "resources=<cpu>:99,<cpu>:1", "", "resources", "resources=",
        "resources=%20", "resources=<cpu>", "resources=<cpu>:", "resources=<cpu>:0",
        "resources=<cpu>:-1", "resources=<cpu>:x", "resources=<cpu>:1.0", "resources=<cpu>:1,",
        "resources=<cpu>:1:1", "resources=CUSTOM_NONE:1", "resources=<cpu>:1,CUSTOM_NONE:1",
        "resources=none:1", "resources=:1", "resources=<cpu>:1&pony=1", "pony"),
    16: tuple(f"resources=<cpu>:1&limit={limit}" for limit in (
        "100", "99999999999999999999", "0", "-1", "", "x", "1.5", "100&limit=100", "1&limit=x")),
    17: tuple(f"{query}&required{traits}" for query, traits in (
        (_HOST, "=<fast>"), (_HOST, "=<is_left>"), (_HOST, "=HW_CPU_X86_AVX2"),
        (_HOST, "=<unused>"), (_HOST, "=<fast>,<fast>"), (_HOST, "=<fast>&required=<unused>"),
        ("resources=<cpu>:1,<gpu>:1", "=<fast>,<is_left>"),
        ("resources=<cpu>:1,<gpu>:1", "=<is_right>"),
        ("resources=<cpu>:1,<disk>:10", "=MISC_SHARES_VIA_AGGREGATE"),
        (_HOST, "="), (_HOST, ""), (_HOST, "=<fast>,"), (_HOST, "=CUSTOM_NONE"), (_HOST, "=none"),
        ("resources=<rare>:1", "=<fast>"))),
    21: tuple(f"{query}&member_of={value}" for query, value in (
        (_HOST, "<zone>"), (_HOST, "in:<zone>,<shared>"), (_HOST, "<missing>"),
        ("resources=<cpu>:1,<disk>:10", "<shared>"), ("resources=<cpu>:1,<disk>:10", "<zone>"),
        ("resources=<cpu>:1,<gpu>:1", "<zone>"), ("resources=<gpu>:1", "<rack>"),
        (_HOST, "in:<zone>"), (_HOST, ""), (_HOST, "pony"), (_HOST, "in:<zone>,pony"),
        (_HOST, "<zone>,<shared>"), (_HOST, "in:"))),
    22: tuple(f"{query}&required={traits}" for query, traits in (
        (_HOST, "!<fast>"), (_HOST, "!<is_left>"), ("resources=<cpu>:1,<gpu>:1", "!<is_left>"),
        ("resources=<cpu>:1,<disk>:10", "!MISC_SHARES_VIA_AGGREGATE"), (_HOST, "!!<fast>"),
        (_HOST, "<fast>,!<is_left>"), (_HOST, "<fast>,!<fast>"), (_HOST, "!"),
        (_HOST, "!CUSTOM_NONE"))),
    24: tuple(f"{_HOST}&member_of={one}&member_of={other}" for one, other in (
        ("<zone>", "<shared>"), ("<zone>", "in:<missing>,<zone>"), ("<zone>", "<missing>"))),
    25: (
        "resources1=<gpu>:1", "resources1=<gpu>:1,<vf>:1", f"{_HOST}&resources1=<gpu>:1",
        f"{_HOST}&resources1=<gpu>:1&required1=<is_left>", f"{_HOST}&resources1=<disk>:10",
        f"resources1=<gpu>:3&{_HOST}", f"{_HOST}&resources1=<gpu>:1&member_of1=<rack>",
        f"{_HOST}&resources1=<gpu>:1&member_of1=<zone>",
        f"{_HOST}&resources1=<gpu>:1&required1=!<is_left>", f"{_TWO}&group_policy=none",
        f"{_TWO}&group_policy=isolate", _TWO, f"{_TWO}&group_policy=pony",
        f"{_TWO}&group_policy=", f"{_TWO}&group_policy=none&group_policy=pony",
        f"{_TWO}&group_policy=none&group_policy=isolate",
        f"{_HOST}&resources1=<gpu>:2&resources2=<gpu>:2&group_policy=none",
        f"{_HOST}&resources1=<rare>:1&resources2=CUSTOM_NONE:1&group_policy=none",
        f"{_HOST}&resources2=CUSTOM_NONE:1&resources1=<rare>:1&group_policy=none",
        f"{_HOST}&required1=<is_left>", f"{_HOST}&member_of1=<zone>", f"{_HOST}&required1=!<fast>",
        "required=<fast>", "limit=1", f"{_HOST}&resources01=<gpu>:1",
        f"{_HOST}&resources0=<gpu>:1", f"{_HOST}&resources1=", f"{_HOST}&resources1=<gpu>",
        f"{_HOST}&resources1=CUSTOM_NONE:1",
        f"{_HOST}&resources1=<gpu>:1&member_of1=<rack>&member_of1=<zone>",
        f"{_HOST}&resources1=<gpu>:1&required1=", f"{_HOST}&resources1=<gpu>:1&member_of1=pony",
        f"{_HOST}&resources1=<gpu>:1&required1=<is_left>,!<is_left>"),
    31: (
        f"{_HOST}&in_tree=<one>", f"{_HOST}&in_tree=<left>", f"{_HOST}&in_tree=<missing>",
        f"{_HOST}&in_tree=<two>&in_tree=<one>", "resources=<cpu>:1,<disk>:10&in_tree=<two>",
        "resources=<cpu>:1,<disk>:10&in_tree=<one>", f"{_HOST}&resources1=<gpu>:1&in_tree1=<two>",
        f"{_HOST}&in_tree=<one>&resources1=<disk>:10&in_tree1=<storage>",
        f"{_HOST}&in_tree=pony", f"{_HOST}&in_tree=", f"{_HOST}&in_tree1=<one>",
        f"{_HOST}&resources1=<gpu>:1&in_tree1=pony"),
    32: tuple(f"{query}={value}" for query, value in (
        (f"{_HOST}&member_of", "!<zone>"), (f"{_HOST}&member_of", "!in:<zone>,<shared>"),
        (f"{_HOST}&member_of=<shared>&member_of", "!<zone>"),
        ("resources=<cpu>:1,<disk>:10&member_of", "!<zone>"),
        (f"{_HOST}&resources1=<gpu>:1&member_of1", "!<rack>"), (f"{_HOST}&member_of", "!"),
        (f"{_HOST}&member_of", "!!<zone>"), (f"{_HOST}&member_of", "in:!<zone>"),
        (f"{_HOST}&member_of", "!<zone>,<shared>"))),
    33: (
        f"{_HOST}&resources_GPU=<gpu>:1&required_GPU=<is_right>", f"{_HOST}&resources01=<gpu>:1",
        f"{_HOST}&resources_A-b_9=<gpu>:1", f"{_HOST}&resources{'a' * 64}=<gpu>:1",
        f"{_HOST}&resources{'a' * 65}=<gpu>:1", f"{_HOST}&resources.=<gpu>:1"),
    35: tuple(f"{_HOST}&resources1=<gpu>:1&root_required={value}" for value in (
        "<fast>", "!<fast>", "<is_left>", "!<is_left>", "<fast>,!<unused>", "<fast>,!<fast>", "",
        "<fast>,", "in:<fast>,<unused>", "CUSTOM_NONE", "!CUSTOM_NONE",
        "<fast>&root_required=<fast>")),
    36: (
        *(f"{_TWO}&group_policy=none&{query}" for query in (
            "same_subtree=1,2", "same_subtree=1", "same_subtree=1, 2,1",
            "required3=<is_numa>&same_subtree=3,1", "required3=<is_right>&same_subtree=2,3",
            "required3=<fast>&same_subtree=1,2,3", "required3=<is_numa>&same_subtree=3",
            "member_of3=<zone>&same_subtree=1,3", "required3=!<fast>&same_subtree=1,3",
            "required3=<is_numa>&in_tree3=<two>&same_subtree=3",
            "required3=<is_right>&required4=<is_net>&same_subtree=3,4&same_subtree=3,1",
            "same_subtree=", "same_subtree=1,", "same_subtree=3", "same_subtree=1,3",
            "required3=<fast>", "required3=<fast>&same_subtree=1",
            "required3=CUSTOM_NONE&same_subtree=3")),
        "required1=<fast>&same_subtree=1", "same_subtree=1",
        f"{_HOST}&required1=<fast>&required2=<is_left>&same_subtree=1,2",
        f"{_HOST}&required1=<is_net>&required2=<is_right>&same_subtree=1,2"
        "&group_policy=isolate"),
    39: tuple(f"{query}&required{traits}" for query, traits in (
        (_HOST, "=in:<fast>,HW_CPU_X86_AVX2"), (_HOST, "=in:<fast>,<unused>"),
        (_HOST, "=<fast>&required=<unused>"), (_HOST, "=<fast>&required=!<unused>"),
        (_HOST, "=in:<fast>,<unused>&required=!<unused>"),
        (_HOST, "=in:<fast>,<unused>&required=!<unused>,!<fast>"),
        ("resources=<cpu>:1,<gpu>:1", "=in:<is_left>,<is_right>&required=in:<fast>,<is_right>"),
        (f"{_HOST}&resources1=<gpu>:1", "1=in:<is_left>,<is_right>&required1=!<is_right>"),
        (_HOST, "=in:"), (_HOST, "=in:<fast>,"), (_HOST, "=in:<fast>,!<unused>"),
        (_HOST, "=in:<fast>,CUSTOM_NONE"), (_HOST, "=<fast>,in:<unused>"))),
}

#: Queries that have several candidates, to be asked with limits
LIMITED = (_HOST, "resources=<cpu>:1,<disk>:10", f"{_TWO}&group_policy=none",
           "resources_A=<gpu>:1&resources_B=<gpu>:1&group_policy=none")

# What nova asks, with classes of this cloud: a plain server, one in a zone with a trait of its
# flavour, one on a host, one with a port with guaranteed bandwidth, one with two GPUs.
_OF_NOVA = tuple(f"limit=1000&{query}" for query in (
    "resources=<cpu>%3A2%2C<mem>%3A100%2C<disk>%3A20&root_required=%21COMPUTE_STATUS_DISABLED",
    "member_of=in%3A<zone>%2C<rack>&required=<fast>&resources=<cpu>%3A2%2C<mem>%3A100"
    "&root_required=%21COMPUTE_STATUS_DISABLED",
    "in_tree=<two>&resources=<cpu>%3A2%2C<disk>%3A20&root_required=%21COMPUTE_STATUS_DISABLED",
    "group_policy=none&member_of=%21in%3A<missing>&required_port-1=<is_right>"
    "&required_port-2=<is_net>&resources=<cpu>%3A2&resources_port-1=<gpu>%3A3"
    "&resources_port-2=<vf>%3A4&root_required=%21COMPUTE_STATUS_DISABLED"
    "&same_subtree=_port-1%2C_port-2",
    "group_policy=none&resources=<cpu>%3A2&resources_gpu-0=<gpu>%3A1&resources_gpu-1=<gpu>%3A1"
    "&root_required=%21COMPUTE_STATUS_DISABLED"))


def _versions(first):
    """Return the minor microversions at which a query is sent, one before the first among them."""
    if base.FULL:
        return range(10, _LAST + 1)
    return sorted({max(10, first - 1), first, *(each for each in _BORDERS if each > first)})


def _queries():
    for first, queries in _QUERIES.items():
        for query in queries:
            for minor in _versions(first):
                yield Case(f"candidates at 1.{minor} {query}",
                           f"GET /allocation_candidates?{query}", version=f"1.{minor}")


def _of_nova():
    for number, query in enumerate(_OF_NOVA):
        for version in ("1.36", "1.39"):
            yield Case(f"candidates of nova {number} at {version}",
                       f"GET /allocation_candidates?{query}", version=version)


def _others():
    path = "/allocation_candidates"
    for version in ("1.0", "1.9", None):
        yield Case(f"candidates at {version}", f"GET {path}?resources=VCPU:1", version=version)
    for method in ("POST", "PUT", "DELETE"):
        for version in ("1.9", "1.39"):
            yield Case(f"{method} candidates at {version}", f"{method} {path}", version=version)
    yield Case("candidates with one more /", f"GET {path}/?resources=VCPU:1", version="1.39")
    yield Case("candidates without a token", f"GET {path}?resources=VCPU:1", version="1.39",
               headers={"x-auth-token": None})
    yield Case("candidates of another role", f"GET {path}?resources=VCPU:1", version="1.39",
               headers={"x-auth-token": "someone"})
    yield Case("candidates as text", f"GET {path}?resources=<cpu>:1", version="1.39",
               headers={"accept": "text/plain"})
    for name, query in (
            ("with 20 digits", "resources=<cpu>:99999999999999999999"),
            ("with a limit of x and of 1", "resources=<cpu>:1&limit=x&limit=1"),
            ("with the policies pony and none", f"{_TWO}&group_policy=pony&group_policy=none"),
            ("in <ZONE>", f"{_HOST}&member_of=<ZONE>"),
            ("in the tree of <ONE>", f"{_HOST}&in_tree=<ONE>")):
        yield Case(f"candidates {name}", f"GET {path}?{query}", version="1.39")


GROUPS = (_queries, _of_nova, _others)
