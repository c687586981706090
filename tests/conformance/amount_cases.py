# SPDX-License-Identifier: Apache-2.0
"""Requests on inventories and allocations whose answers are compared."""

from tests.conformance.case import Case

_ONE, _OTHER, _NOBODY = (f"/resource_providers/<{name}>" for name in ("full", "empty", "missing"))

_BAD_RECORDS = (
    ("total 0", {"total": 0}), ("total -1", {"total": -1}), ("total as text", {"total": "8"}),
    ("total 8.0", {"total": 8.0}), ("total 8.5", {"total": 8.5}), ("no total", {"reserved": 1}),
    ("total null", {"total": None}), ("total true", {"total": True}),
    ("total 2^31-1", {"total": 2 ** 31 - 1}), ("total 2^31", {"total": 2 ** 31}),
    ("all reserved", {"total": 8, "reserved": 8}), ("more reserved", {"total": 8, "reserved": 9}),
    ("reserved -1", {"total": 8, "reserved": -1}), ("min_unit 0", {"total": 8, "min_unit": 0}),
    ("max_unit 0", {"total": 8, "max_unit": 0}), ("step_size 0", {"total": 8, "step_size": 0}),
    ("min above max", {"total": 8, "min_unit": 5, "max_unit": 4}),
    ("max_unit above total", {"total": 8, "max_unit": 9}),
    ("ratio 0", {"total": 8, "allocation_ratio": 0}),
    ("ratio -1", {"total": 8, "allocation_ratio": -1}),
    ("ratio as text", {"total": 8, "allocation_ratio": "1"}),
    ("ratio 1", {"total": 8, "allocation_ratio": 1}),
    ("ratio 0.01", {"total": 8, "allocation_ratio": 0.01}),
    ("ratio 1e39", {"total": 8, "allocation_ratio": 1e39}),
    ("ratio of MySQL", {"total": 8, "allocation_ratio": 3.40282e+38}),
    ("an unknown key", {"total": 8, "pony": 1}), ("a number", 8), ("null", None))


def _inventories():
    for version in ("1.0", "1.4"):
        yield Case(f"inventories at {version}", f"GET {_ONE}/inventories", version=version)
        yield Case(f"set inventories at {version}", f"PUT {_OTHER}/inventories", {
            "resource_provider_generation": 0, "inventories": {
                "VCPU": {"total": 8}, "<free>": {"total": 3, "max_unit": 2}}}, version=version)
    yield Case("inventories of none", f"GET {_OTHER}/inventories")
    yield Case("inventories of a missing one", f"GET {_NOBODY}/inventories")
    yield Case("inventories, bad uuid", "GET /resource_providers/pony/inventories")
    for what, record in _BAD_RECORDS:
        yield Case(f"set inventories with {what}", f"PUT {_OTHER}/inventories", {
            "resource_provider_generation": 0, "inventories": {"VCPU": record}})
        if isinstance(record, dict):
            yield Case(f"add an inventory with {what}", f"POST {_OTHER}/inventories", {
                "resource_class": "VCPU", **record})
    for what, generation in (("wrong", 7), ("text", "0"), ("null", None), ("negative", -1),
                             ("as 0.0", 0.0), ("fraction", 0.5), ("huge", 10 ** 30)):
        yield Case(f"set inventories, generation {what}", f"PUT {_OTHER}/inventories", {
            "resource_provider_generation": generation, "inventories": {"VCPU": {"total": 8}}})
    body = {"resource_provider_generation": 0, "inventories": {}}
    yield Case("set no inventories", f"PUT {_OTHER}/inventories", body)
    yield Case("set inventories of a missing one", f"PUT {_NOBODY}/inventories", body)
    yield Case("set inventories with more", f"PUT {_OTHER}/inventories", {**body, "pony": 1})
    yield Case("set inventories without them", f"PUT {_OTHER}/inventories", {
        "resource_provider_generation": 0})
    yield Case("set inventories without a generation", f"PUT {_OTHER}/inventories", {
        "inventories": {}})
    for name in ("PONY", "CUSTOM_PONY", "vcpu", "", "VCPU "):
        yield Case(f"set inventories of class {name!r}", f"PUT {_OTHER}/inventories", {
            **body, "inventories": {name: {"total": 8}}})
        yield Case(f"add an inventory of class {name!r}", f"POST {_OTHER}/inventories", {
            "resource_class": name, "total": 8})
    everything = {"VCPU": {"total": 10}, "DISK_GB": {"total": 100}}
    for what, change in (
            ("what was", {}), ("less than is used", {"VCPU": {"total": 1}}),
            ("a step that is broken", {"VCPU": {"total": 10, "step_size": 5}}),
            ("more reserved than is left", {"VCPU": {"total": 10, "reserved": 9}})):
        yield Case(f"set inventories to {what}", f"PUT {_ONE}/inventories", {
            "resource_provider_generation": 2, "inventories": {**everything, **change}})
    yield Case("take away an inventory that is used", f"PUT {_ONE}/inventories", {
        "resource_provider_generation": 2, "inventories": {"VCPU": {"total": 10}}})
    yield Case("take away all inventories", f"PUT {_ONE}/inventories", {
        **body, "resource_provider_generation": 2})


def _single_inventories():
    path = f"{_ONE}/inventories"
    for name in ("VCPU", "DISK_GB", "<free>", "PONY", "vcpu", "CUSTOM_PONY", "%20"):
        yield Case(f"inventory {name}", f"GET {path}/{name}")
        yield Case(f"delete inventory {name}", f"DELETE {path}/{name}")
    yield Case("delete an unused inventory", f"DELETE {path}/<used>")
    yield Case("delete an unused inventory at 1.0", f"DELETE {path}/<used>", version="1.0")
    yield Case("inventory of a missing one", f"GET {_NOBODY}/inventories/VCPU")
    yield Case("delete inventory of a missing one", f"DELETE {_NOBODY}/inventories/VCPU")
    good = {"resource_class": "<free>", "total": 5, "reserved": 1}
    yield Case("add an inventory", f"POST {path}", good)
    yield Case("add an inventory at 1.0", f"POST {path}", good, version="1.0")
    yield Case("add an inventory with a generation", f"POST {path}", {
        **good, "resource_provider_generation": 2})
    yield Case("add an inventory with a wrong generation", f"POST {path}", {
        **good, "resource_provider_generation": 7})
    yield Case("add an inventory that exists", f"POST {path}", {**good, "resource_class": "VCPU"})
    yield Case("add an inventory to a missing one", f"POST {_NOBODY}/inventories", good)
    yield Case("add an inventory of no class", f"POST {path}", {"total": 5})
    change = {"resource_provider_generation": 2, "total": 20}
    yield Case("change an inventory", f"PUT {path}/VCPU", change)
    yield Case("change an inventory at 1.0", f"PUT {path}/VCPU", change, version="1.0")
    yield Case("change nothing in an inventory", f"PUT {path}/VCPU", {**change, "total": 10})
    yield Case("change a missing inventory", f"PUT {path}/<free>", change)
    yield Case("change an inventory of a missing one", f"PUT {_NOBODY}/inventories/VCPU", change)
    for name in ("PONY", "vcpu", "CUSTOM_PONY"):
        yield Case(f"change an inventory of class {name}", f"PUT {path}/{name}", change)
    for what, more in (
            ("a wrong generation", {"resource_provider_generation": 7}), ("a class", {
                "resource_class": "VCPU"}), ("another class", {"resource_class": "DISK_GB"}),
            ("an unknown key", {"pony": 1}), ("less than is used", {"total": 1}),
            ("total 0", {"total": 0}), ("more reserved", {"reserved": 21}),
            ("all reserved", {"reserved": 20})):
        yield Case(f"change an inventory with {what}", f"PUT {path}/VCPU", {**change, **more})
    yield Case("change an inventory without a generation", f"PUT {path}/VCPU", {"total": 20})
    yield Case("change an inventory without a total", f"PUT {path}/VCPU", {
        "resource_provider_generation": 2, "reserved": 1})


def _usages():
    for path in ("usages", "allocations"):
        for version in ("1.0", "1.4"):
            yield Case(f"{path} at {version}", f"GET {_ONE}/{path}", version=version)
        yield Case(f"{path} of none", f"GET {_OTHER}/{path}")
        yield Case(f"{path} of a missing one", f"GET {_NOBODY}/{path}")
        yield Case(f"{path}, bad uuid", f"GET /resource_providers/pony/{path}")


def _wanted(provider="<full>", **resources):
    return {"resource_provider": {"uuid": provider}, "resources": resources}


def _allocations():
    new, old = "/allocations/<missing>", "/allocations/<consumer>"
    for version in ("1.0", "1.4"):
        yield Case(f"allocations of a consumer at {version}", f"GET {old}", version=version)
        yield Case(f"allocate at {version}", f"PUT {new}", {
            "allocations": [_wanted(VCPU=1, MEMORY_MB=64)]}, version=version)
        yield Case(f"free at {version}", f"DELETE {old}", version=version)
    yield Case("allocations of nobody", f"GET {new}")
    yield Case("free nobody's", f"DELETE {new}")
    for method in ("GET", "DELETE"):
        yield Case(f"{method} allocations of a bad uuid", f"{method} /allocations/pony")
    body = {"allocations": [_wanted(VCPU=1)]}
    for consumer in ("pony", "0123456789abcdef0123456789abcdef", "<FULL>"):
        yield Case(f"allocate for {consumer}", f"PUT /allocations/{consumer}", body)
    yield Case("allocate anew", f"PUT {old}", {"allocations": [_wanted(VCPU=3)]})
    yield Case("allocate anew what it has", f"PUT {old}", {
        "allocations": [_wanted(VCPU=2, DISK_GB=10)]})
    yield Case("allocate anew all there is", f"PUT {old}", {"allocations": [_wanted(VCPU=10)]})
    for name, amount in (
            ("PONY", 1), ("CUSTOM_PONY", 1), ("vcpu", 1), ("<free>", 1), ("<used>", 4),
            ("VCPU", 0), ("VCPU", -1), ("VCPU", 8),
            ("VCPU", 9), ("VCPU", 1.0), ("VCPU", 1.5), ("VCPU", "1"),
            ("VCPU", None), ("VCPU", True), ("VCPU", 2 ** 31), ("VCPU", 10 ** 30), ("DISK_GB", 3),
            ("DISK_GB", 7), ("DISK_GB", 25), ("DISK_GB", 20), ("MEMORY_MB", 1001), ("", 1)):
        yield Case(f"allocate {amount!r} of {name!r}", f"PUT {new}", {
            "allocations": [_wanted(**{name: amount})]})
    for what, allocations in (
            ("nothing", []), ("no resources", [_wanted()]), ("of a missing one", [
                _wanted("<missing>", VCPU=1)]), ("of a bad uuid", [_wanted("pony", VCPU=1)]),
            ("of one and a missing one", [_wanted(VCPU=1), _wanted("<missing>", VCPU=1)]),
            ("of one without inventory", [_wanted("<empty>", VCPU=1)]),
            ("of one twice", [_wanted(VCPU=1), _wanted(VCPU=2)]),
            ("of one twice, two classes", [_wanted(VCPU=1), _wanted(MEMORY_MB=2)]),
            ("of capitals", [_wanted("<FULL>", VCPU=1)]),
            ("in the newer form", {"<full>": {"resources": {"VCPU": 1}}}),
            ("without a provider", [{"resources": {"VCPU": 1}}]),
            ("without resources", [{"resource_provider": {"uuid": "<full>"}}]),
            ("with a generation", [{**_wanted(VCPU=1), "generation": 1}]),
            ("with more of a provider", [{"resource_provider": {"uuid": "<full>", "name": "x"},
                                          "resources": {"VCPU": 1}}]),
            ("null", None), ("of 100 at once", [_wanted(VCPU=1)] * 100)):
        yield Case(f"allocate {what}", f"PUT {new}", {"allocations": allocations})
    yield Case("free by allocating nothing", f"PUT {old}", {"allocations": []})
    yield Case("allocate with a project", f"PUT {new}", {
        **body, "project_id": "p", "user_id": "u"})
    yield Case("allocate with more", f"PUT {new}", {**body, "pony": 1})
    yield Case("allocate without allocations", f"PUT {new}", {})


GROUPS = (_inventories, _single_inventories, _usages, _allocations)
