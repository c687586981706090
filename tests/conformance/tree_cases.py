# SPDX-License-Identifier: Apache-2.0
"""Requests of microversions 1.5 to 1.39 on providers, trees, traits, aggregates and classes."""

import functools

from tests.conformance.case import Case as AnyCase

_ALL, _ROOT, _CHILD = ("/resource_providers", "/resource_providers/<root>",
                       "/resource_providers/<child>")
_NOBODY = f"{_ALL}/<missing>"
Case = functools.partial(AnyCase, version="1.39")


def _shapes():
    """What a provider looks like, where a microversion changes it."""
    for version in ("1.5", "1.6", "1.10", "1.11", "1.13", "1.14", "1.15", "1.39"):
        yield Case(f"child at {version}", f"GET {_CHILD}", version=version)
        yield Case(f"list the child at {version}", f"GET {_ALL}?uuid=<child>", version=version)
    for path in ("inventories", "inventories/VGPU", "usages", "aggregates", "allocations",
                 "traits"):
        for version in ("1.14", "1.15", "1.39"):
            yield Case(f"{path} of the child at {version}", f"GET {_CHILD}/{path}",
                       version=version)
        yield Case(f"{path} of none at 1.39", f"GET {_ALL}/<empty>/{path}")
        yield Case(f"{path} of a missing one at 1.39", f"GET {_NOBODY}/{path}")
    for version in ("1.14", "1.15"):
        yield Case(f"the root address at {version}", "GET /", version=version, whole=False)
        yield Case(f"an error at {version}", f"GET {_NOBODY}", version=version)
    for version in ("1.22", "1.23"):
        yield Case(f"an error's code at {version}", f"GET {_NOBODY}", version=version)
        yield Case(f"an unknown address at {version}", "GET /nothing", version=version)
        yield Case(f"another method at {version}", f"PATCH {_ALL}", version=version)
        yield Case(f"a forbidden request at {version}", f"GET {_ALL}", version=version, headers={
            "x-auth-token": "somebody"})


def _creating():
    own = {"name": "<name>", "uuid": "<missing>"}
    for version in ("1.13", "1.14", "1.19", "1.20", "1.39"):
        yield Case(f"create at {version}", f"POST {_ALL}", own, version=version)
        yield Case(f"create a child at {version}", f"POST {_ALL}", {
            **own, "parent_provider_uuid": "<child>"}, version=version)
    for what, change in (
            ("no parent", {"parent_provider_uuid": None}),
            ("a missing parent", {"parent_provider_uuid": "<aggregate>"}),
            ("itself for a parent", {"parent_provider_uuid": "<missing>"}),
            ("a bad parent", {"parent_provider_uuid": "pony"}),
            ("the name of another at 1.39", {"name": "root <root>"}),
            ("the uuid of another at 1.39", {"uuid": "<root>"}),
            ("an empty name at 1.39", {"name": ""}),
            ("a root", {"root_provider_uuid": "<root>"})):
        yield Case(f"create with {what}", f"POST {_ALL}", {**own, **change})


def _moving():
    name = {"name": "child <child>"}
    for version in ("1.13", "1.14", "1.36", "1.37"):
        for what, parent in (
                ("the same parent", "<root>"), ("another parent", "<full>"), ("no parent", None),
                ("itself", "<child>"), ("a missing parent", "<missing>"), ("a text", "pony")):
            yield Case(f"move below {what} at {version}", f"PUT {_CHILD}", {
                **name, "parent_provider_uuid": parent}, version=version)
        yield Case(f"move a root at {version}", f"PUT {_ROOT}", {
            "name": "root <root>", "parent_provider_uuid": "<full>"}, version=version)
        yield Case(f"move a root below its child at {version}", f"PUT {_ROOT}", {
            "name": "root <root>", "parent_provider_uuid": "<child>"}, version=version)
        yield Case(f"rename a child at {version}", f"PUT {_CHILD}", {"name": "<name>"},
                   version=version)
    yield Case("rename to the name of another at 1.39", f"PUT {_CHILD}", {"name": "root <root>"})
    yield Case("delete a parent", f"DELETE {_ROOT}")
    yield Case("delete a child that is used", f"DELETE {_CHILD}")
    yield Case("delete a missing one at 1.39", f"DELETE {_NOBODY}")


def _listing():
    for query in (
            "in_tree=<root>", "in_tree=<child>", "in_tree=<missing>", "in_tree=pony", "in_tree=",
            "in_tree=<root>&in_tree=<full>", "in_tree=<root>&uuid=<child>",
            "in_tree=<root>&name=child%20<child>", "in_tree=<root>&resources=VGPU:1",
            "in_tree=<root>&resources=VGPU:4", "in_tree=<root>&resources=VCPU:1,VGPU:1",
            "in_tree=<root>&required=<trait>", "in_tree=<root>&required=!<trait>",
            "in_tree=<root>&required=<trait>,HW_CPU_X86_AVX",
            "in_tree=<root>&required=<trait>,!HW_CPU_X86_AVX",
            "in_tree=<root>&required=<trait>,!<trait>", "in_tree=<root>&required=!!<trait>",
            "in_tree=<root>&required=in:<trait>,HW_CPU_X86_SSE",
            "in_tree=<root>&required=in:HW_CPU_X86_SSE",
            "in_tree=<root>&required=<trait>&required=HW_CPU_X86_SSE",
            "in_tree=<root>&required=in:<trait>,!HW_CPU_X86_SSE",
            "required=", "required=,", "required=<trait>,", "required=!", "required=in:",
            "required=PONY", "required=!PONY", "required=CUSTOM_PONY_<mark>",
            "required=%20<trait>",
            "member_of=<aggregate>&uuid=<grouped>", "member_of=!<aggregate>&uuid=<grouped>",
            "member_of=!<aggregate>&uuid=<child>",
            "member_of=!in:<aggregate>,<missing>&uuid=<root>",
            "member_of=<aggregate>&member_of=<missing>&uuid=<grouped>",
            "member_of=<aggregate>&member_of=!<missing>&uuid=<grouped>",
            "member_of=in:<aggregate>,!<missing>", "member_of=!", "member_of=!in:",
            "member_of=!pony", "resources=VGPU:1&uuid=<child>", "resources=PONY:1",
            "pony=1", "limit=1"):
        yield Case(f"list {query} at 1.39", f"GET {_ALL}?{query}", whole="<" in query)
    for version, query in (
            ("1.13", "in_tree=<root>"), ("1.14", "in_tree=<root>"),
            ("1.17", "required=<trait>"), ("1.18", "required=<trait>"),
            ("1.21", "required=!<trait>"), ("1.22", "required=!<trait>&uuid=<child>"),
            ("1.38", "required=in:<trait>,HW_CPU_X86_SSE"),
            ("1.38", "required=<trait>&required=HW_CPU_X86_SSE&uuid=<child>"),
            ("1.23", "member_of=<aggregate>&member_of=<missing>"),
            ("1.24", "member_of=<aggregate>&member_of=<missing>"),
            ("1.31", "member_of=!<aggregate>"), ("1.32", "member_of=!<aggregate>&uuid=<child>")):
        yield Case(f"list {query} at {version}", f"GET {_ALL}?{query}", version=version)


def _traits():
    path = f"{_CHILD}/traits"
    yield Case("traits before 1.6", "GET /traits", version="1.5")
    for query in ("name=in:<trait>,PONY", "name=startswith:<trait>", "name=startswith:NOTHING_",
                  "name=pony", "name=pony:<trait>&associated=maybe", "associated=pony", "pony=1",
                  "name=in:<trait>&associated=true", "name=in:<trait>&associated=FALSE",
                  "name=in:", "name="):
        yield Case(f"list traits {query}", f"GET /traits?{query}",
                   whole="<" in query)
    for name in ("<trait>", "HW_CPU_X86_AVX", "PONY", "CUSTOM_PONY_<mark>", "CUSTOM_pony",
                 "CUSTOM_", "CUSTOM_" + 249 * "X", "custom_x"):
        shown = name[:20]
        yield Case(f"show trait {shown}", f"GET /traits/{name}")
        yield Case(f"create trait {shown}", f"PUT /traits/{name}")
        yield Case(f"delete trait {shown}", f"DELETE /traits/{name}")
    yield Case("create a trait at 1.6", "PUT /traits/CUSTOM_PONY_<mark>", version="1.6")
    for version in ("1.6", "1.39"):
        yield Case(f"set traits at {version}", f"PUT {path}", {
            "traits": ["HW_CPU_X86_SSE"], "resource_provider_generation": 3}, version=version)
        yield Case(f"clear traits at {version}", f"DELETE {path}", version=version)
    for what, change in (
            ("the same", {"traits": ["HW_CPU_X86_AVX", "<trait>"]}), ("none", {"traits": []}),
            ("one twice", {"traits": ["<trait>", "<trait>"]}),
            ("an unknown one", {"traits": ["PONY"]}), ("two unknown ones", {
                "traits": ["CUSTOM_PONY_A", "CUSTOM_PONY_B"]}),
            ("a number", {"traits": [1]}), ("an empty name", {"traits": [""]}),
            ("text", {"traits": "<trait>"}), ("more", {"pony": 1}),
            ("a stale generation", {"resource_provider_generation": 1}),
            ("a text for a generation", {"resource_provider_generation": "3"})):
        yield Case(f"set {what} as traits", f"PUT {path}", {
            "traits": ["HW_CPU_X86_SSE"], "resource_provider_generation": 3, **change})
    yield Case("set traits without a generation", f"PUT {path}", {"traits": []})
    yield Case("set traits of a missing one", f"PUT {_NOBODY}/traits", {
        "traits": [], "resource_provider_generation": 0})
    yield Case("set bad traits of a missing one", f"PUT {_NOBODY}/traits", {"traits": []})
    yield Case("clear traits of a missing one", f"DELETE {_NOBODY}/traits")
    yield Case("clear traits of none", f"DELETE {_ALL}/<empty>/traits")


def _aggregates():
    path = f"{_CHILD}/aggregates"
    own = {"aggregates": ["<aggregate>"], "resource_provider_generation": 3}
    yield Case("set aggregates at 1.18", f"PUT {path}", ["<aggregate>"], version="1.18")
    yield Case("set aggregates at 1.19", f"PUT {path}", own, version="1.19")
    for what, body in (
            ("a list", ["<aggregate>"]), ("none at 1.39", {**own, "aggregates": []}),
            ("one twice at 1.39", {**own, "aggregates": ["<aggregate>", "<aggregate>"]}),
            ("a bad uuid at 1.39", {**own, "aggregates": ["pony"]}),
            ("a stale generation, as aggregates", {**own, "resource_provider_generation": 1}),
            ("no generation", {"aggregates": []}), ("more with aggregates", {**own, "pony": 1})):
        yield Case(f"set {what} of the child", f"PUT {path}", body)
    yield Case("set aggregates of a missing one at 1.39", f"PUT {_NOBODY}/aggregates", own)
    yield Case("set bad aggregates of a missing one", f"PUT {_NOBODY}/aggregates", [])


def _inventories():
    path = f"{_CHILD}/inventories"
    record = {"total": 4}
    body = {"resource_provider_generation": 3, "inventories": {"VGPU": record}}
    yield Case("delete all inventories at 1.4", f"DELETE {_ALL}/<empty>/inventories",
               version="1.4")
    yield Case("delete all inventories", f"DELETE {_ALL}/<grouped>/inventories", version="1.5")
    yield Case("delete all inventories of none", f"DELETE {_ALL}/<empty>/inventories")
    yield Case("delete all inventories that are used", f"DELETE {path}")
    yield Case("delete all inventories of a missing one", f"DELETE {_NOBODY}/inventories")
    for version in ("1.25", "1.26"):
        for what, change in (("all", 4), ("more than all", 5)):
            yield Case(f"reserve {what} at {version}", f"PUT {path}", {
                **body, "inventories": {"VGPU": record, "VCPU": {"total": 4, "reserved": change}}},
                       version=version)
            yield Case(f"add with {what} reserved at {version}", f"POST {path}", {
                "resource_class": "VCPU", "total": 4, "reserved": change}, version=version)
        yield Case(f"a capacity of nothing at {version}", f"POST {path}", {
            "resource_class": "VCPU", "total": 4, "allocation_ratio": 0.1}, version=version)
    yield Case("shrink below what is used at 1.5", f"PUT {_ROOT}/inventories/VCPU", {
        "resource_provider_generation": 2, "total": 1}, version="1.5")
    yield Case("remove what is used at 1.39", f"PUT {path}", {**body, "inventories": {}})
    yield Case("a stale generation of inventories", f"PUT {path}", {
        **body, "resource_provider_generation": 1})
    yield Case("delete a used inventory at 1.39", f"DELETE {path}/VGPU")
    yield Case("delete no inventory at 1.39", f"DELETE {path}/VCPU")
    yield Case("add an inventory that exists at 1.39", f"POST {path}", {
        "resource_class": "VGPU", "total": 1})
    yield Case("add an inventory of no class at 1.39", f"POST {path}", {
        "resource_class": "CUSTOM_PONY", "total": 1})
    yield Case("change no inventory at 1.39", f"PUT {path}/VCPU", {
        "resource_provider_generation": 3, "total": 1})


def _classes():
    for name in ("<used>", "<used>_2", "VCPU", "PONY", "CUSTOM_pony", "CUSTOM_" + 249 * "X"):
        yield Case(f"confirm class {name[:20]}", f"PUT /resource_classes/{name}", version="1.7")
    yield Case("confirm a class at 1.39", "PUT /resource_classes/<used>_3")
    yield Case("create a class at 1.39", "POST /resource_classes", {"name": "<used>_3"})
    yield Case("create a class that exists at 1.39", "POST /resource_classes", {"name": "<used>"})
    yield Case("delete a used class at 1.39", "DELETE /resource_classes/<used>")
    yield Case("delete VCPU at 1.39", "DELETE /resource_classes/VCPU")
    for version in ("1.14", "1.15"):
        yield Case(f"show a class at {version}", "GET /resource_classes/<used>", version=version)
        yield Case(f"list classes at {version}", "GET /resource_classes", version=version,
                   whole=False)


GROUPS = (_shapes, _creating, _moving, _listing, _traits, _aggregates, _inventories, _classes)
