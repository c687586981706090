# SPDX-License-Identifier: Apache-2.0
"""Providers, trees, aggregates, traits and classes at microversions from 1.5 on."""

from tests.conformance.case import Case

_ALL, _ONE = "/resource_providers", "/resource_providers/<full>"
_BAD = "not-a-uuid"


def _at(versions, name, request, *args, **kwargs):
    for version in versions.split():
        yield Case(f"{name} at {version}", request, *args, version=version, **kwargs)


def _filters():
    around = {
        "member_of": ("1.23 1.24 1.31 1.32", (
            "<aggregate>", "<AGGREGATE>", "in:<aggregate>,<missing>", "!<aggregate>",
            "!in:<aggregate>,<missing>", "in:!<aggregate>", "!!<aggregate>", "", "!", "in:",
            "!in:", "<aggregate>,<missing>", "!<aggregate>,<missing>", _BAD, f"!{_BAD}",
            "<aggregate>&member_of=<missing>", "<aggregate>&member_of=!<missing>",
            "<missing>&member_of=<aggregate>")),
        "required": ("1.17 1.18 1.21 1.22 1.38 1.39", (
            "<trait>", "!<trait>", "!!<trait>", "<trait>,!<trait>", "<trait>,HW_CPU_X86_VMX", "",
            "!", ",", "<trait>,", " <trait> ", "in:<trait>", "in:<trait>,HW_CPU_X86_VMX",
            "in:<trait>,!HW_CPU_X86_VMX", "in:", "in:<trait>,", "NO_SUCH", "!NO_SUCH", "no_such",
            "in:NO_SUCH,<trait>", "<trait>,in:HW_CPU_X86_VMX", "<trait>&required=!<trait>",
            "HW_CPU_X86_VMX&required=<trait>", "<trait>&required=HW_CPU_X86_VMX")),
        "in_tree": ("1.13 1.14 1.39", (
            "<full>", "<child>", "<empty>", "<missing>", "", _BAD, "<missing>&in_tree=<full>")),
        "resources": ("1.39", (
            "VCPU:1", "VCPU:1,DISK_GB:5", "VCPU:1,DISK_GB:7", "VCPU:100", "", "VCPU", "VCPU:",
            "VCPU:0", "VCPU:-1", "VCPU:1.0", "VCPU:1,", ",VCPU:1", ":1", "VCPU:1:1", "vcpu:1",
            "NO_SUCH:1", "<used>:1", "VCPU:9223372036854775807", "VCPU:1&resources=VCPU:100",
            "VCPU:100&resources=VCPU:1")),
        "name": ("1.39", ("", "grouped <grouped>", "nobody", "nobody&name=grouped <grouped>")),
        "uuid": ("1.39", ("<child>", "", _BAD, "<missing>", "<missing>&uuid=<child>")),
        "limit": ("1.39", ("1",)),
    }
    for name, (versions, values) in around.items():
        # What earlier requests have left is not in this tree.
        tree = "" if name == "in_tree" else "&in_tree=<full>"
        for value in values:
            yield from _at(versions, f"list {name}={value}", f"GET {_ALL}?{name}={value}{tree}")
    yield from _at("1.39", "list with every filter", (
        f"GET {_ALL}?in_tree=<full>&required=<trait>&uuid=<child>&required=!HW_CPU_X86_VMX"
        "&member_of=!<aggregate>"))
    yield from _at("1.39", "list with every filter and room", (
        f"GET {_ALL}?in_tree=<full>&resources=VCPU:1&required=!<trait>"))


def _shapes():
    versions = "1.5 1.6 1.11 1.14 1.15 1.18 1.19 1.39"
    for path in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"):
        for one in ("<full>", "<empty>", "<missing>"):
            yield from _at(versions, f"GET of {one}{path}", f"GET {_ALL}/{one}{path}")
    for path in (_ALL, "/", "/traits/<trait>", "/traits/NO_SUCH", "/resource_classes/<used>",
                 "/resource_classes/VCPU", "/resource_classes/NO_SUCH",
                 f"{_ONE}/inventories/VCPU", f"{_ONE}/inventories/NO_SUCH",
                 "/traits?name=in:<trait>,no,HW_CPU_X86_VMX", "/traits?name=in:",
                 "/traits?name=startswith:CUSTOM_", "/traits?name=startswith:zzz",
                 "/traits?name=other:<trait>&associated=true", "/traits?name=", "/traits?name=x",
                 "/traits?associated=TRUE&name=startswith:CUSTOM_", "/traits?associated=maybe",
                 "/traits?associated=", "/traits?pony=1", "/traits?name=x&name=in:<trait>"):
        yield from _at("1.5 1.6 1.14 1.15 1.39", f"GET of {path}", f"GET {path}",
                       whole=path not in ("/", _ALL))


def _methods():
    for path in ("/traits", "/traits/<trait>", _ALL, _ONE, f"{_ONE}/traits", f"{_ONE}/aggregates",
                 f"{_ONE}/inventories", "/resource_classes", "/resource_classes/<free>",
                 f"{_ONE}/usages", f"{_ONE}/allocations", "/usages", "/allocations"):
        for method in ("PATCH", "DELETE", "POST", "PUT"):
            if (method, path) in _EXISTING:
                continue
            yield from _at("1.0 1.39", f"{method} of {path}", f"{method} {path}")


_EXISTING = frozenset((
    ("DELETE", "/traits/<trait>"), ("PUT", "/traits/<trait>"), ("POST", _ALL), ("PUT", _ONE),
    ("DELETE", _ONE), ("PUT", f"{_ONE}/traits"), ("DELETE", f"{_ONE}/traits"),
    ("PUT", f"{_ONE}/aggregates"), ("PUT", f"{_ONE}/inventories"),
    ("POST", f"{_ONE}/inventories"), ("DELETE", f"{_ONE}/inventories"),
    ("POST", "/resource_classes"), ("PUT", "/resource_classes/<free>"),
    ("DELETE", "/resource_classes/<free>"), ("POST", "/allocations")))


def _trees():
    for value in ("<full>", "<missing>", None, "", _BAD, 5, "<child>"):
        yield from _at("1.13 1.14 1.19 1.20", f"create below {value}", f"POST {_ALL}", {
            "name": "<name>", "uuid": "<missing>", "parent_provider_uuid": value})
        for which in ("empty", "child", "full"):
            yield from _at("1.13 1.14 1.36 1.37", f"move {which} below {value}",
                           f"PUT {_ALL}/<{which}>",
                           {"name": f"{which} <{which}>", "parent_provider_uuid": value})
    yield from _at("1.14 1.36 1.39", "below itself under the name of another",
                   f"PUT {_ALL}/<full>", {
                       "name": "child <child>", "parent_provider_uuid": "<full>"})
    yield from _at("1.39", "create below itself", f"POST {_ALL}", {
        "name": "<name>", "uuid": "<missing>", "parent_provider_uuid": "<missing>"})
    yield from _at("1.20 1.39", "create with all", f"POST {_ALL}", {
        "name": "<name>", "uuid": "<missing>", "parent_provider_uuid": "<full>"})
    yield from _at("1.39", "create with a root", f"POST {_ALL}", {
        "name": "<name>", "root_provider_uuid": "<full>"})
    for which in ("full", "child", "empty", "missing"):
        yield from _at("1.15 1.39", f"delete {which}", f"DELETE {_ALL}/<{which}>")
    yield from _at("1.14 1.15 1.39", "change nothing of one", f"PUT {_ALL}/<child>", {
        "name": "child <child>"})
    for path, body in (("", {"pony": 1}), ("/aggregates", {"pony": 1}), ("/traits", {}),
                       ("/inventories", {}), ("/inventories/VCPU", {})):
        yield from _at("1.19 1.39", f"PUT missing{path}", f"PUT {_ALL}/<missing>{path}", body)


def _groups():
    for version in ["1.18", "1.19"]:
        for name, body in (
                ("list", ["<aggregate>", "<missing>"]), ("none", []),
                ("twice", ["<aggregate>", "<aggregate>"]), ("bad", [_BAD]),
                ("object", {"aggregates": ["<missing>", "<aggregate>"],
                            "resource_provider_generation": 0}),
                ("stale", {"aggregates": [], "resource_provider_generation": 7}),
                ("negative", {"aggregates": [], "resource_provider_generation": -7}),
                ("text", {"aggregates": [], "resource_provider_generation": "0"}),
                ("no generation", {"aggregates": []})):
            yield Case(f"aggregates {name} at {version}", f"PUT {_ALL}/<empty>/aggregates", body,
                       version=version)
    for name, traits, generation in (
            ("one", ["<trait>"], 0), ("none", [], 0), ("twice", ["<trait>", "<trait>"], 0),
            ("unknown", ["<trait>", "NO_SUCH"], 0), ("lower", ["no_such"], 0),
            ("empty name", [""], 0), ("long", ["A" * 256], 0), ("stale", ["<trait>"], 7),
            ("negative", ["<trait>"], -7), ("stale and unknown", ["NO_SUCH"], 7),
            ("no list", "<trait>", 0), ("text", [], "0"), ("float", [], 0.0)):
        yield from _at("1.6 1.15 1.39", f"traits {name}", f"PUT {_ALL}/<empty>/traits", {
            "traits": traits, "resource_provider_generation": generation})
    for which in ("child", "empty", "missing"):
        yield from _at("1.6 1.39", f"clear traits of {which}", f"DELETE {_ALL}/<{which}>/traits")


def _names():
    for name in ("<trait>", "CUSTOM_<free>", "HW_CPU_X86_VMX", "NO_SUCH", "CUSTOM_a", "CUSTOM_",
                 "CUSTOM_" + "A" * 248, "CUSTOM_" + "A" * 249):
        for method in ("GET", "PUT", "DELETE"):
            yield from _at("1.6 1.15 1.39", f"{method} trait {name[:20]} of {len(name)}",
                           f"{method} /traits/{name}")
    for name in ("<used>", "<free>", "<used>_2", "VCPU", "NO_SUCH", "CUSTOM_a", "CUSTOM_",
                 "CUSTOM_" + "A" * 248, "CUSTOM_" + "A" * 249):
        for method in ("GET", "PUT", "DELETE"):
            yield from _at("1.7 1.39", f"{method} class {name[:20]} of {len(name)}",
                           f"{method} /resource_classes/{name}")
    for name in ("<used>", "<used>_2", "VCPU", "NO_SUCH"):
        yield from _at("1.6", f"rename a class to {name}", "PUT /resource_classes/<free>", {
            "name": name})


GROUPS = (_filters, _shapes, _methods, _trees, _groups, _names)
