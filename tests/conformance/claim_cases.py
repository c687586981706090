# SPDX-License-Identifier: Apache-2.0
"""Requests of microversions 1.8 to 1.39 on allocations, usages and reshapes."""

import functools

from tests.conformance.case import Case as AnyCase

Case = functools.partial(AnyCase, version="1.39")
_NEW, _OLD = "/allocations/<missing>", "/allocations/<owned>"
_OWNER = {"project_id": "<project>", "user_id": "<user>"}
_LIST = [{"resource_provider": {"uuid": "<leaf>"}, "resources": {"VGPU": 1}}]
_DICT = {"<leaf>": {"resources": {"VGPU": 1}}}


def _body(version, **changes):
    """Return the body of a claim for one VGPU as a microversion has it."""
    minor = int(version.partition(".")[2])
    return {"allocations": _DICT if minor >= 12 else _LIST, **(_OWNER if minor >= 8 else {}),
            **({"consumer_generation": None} if minor >= 28 else {}),
            **({"consumer_type": "INSTANCE"} if minor >= 38 else {}), **changes}


def _claiming():
    for version in ("1.7", "1.8", "1.11", "1.12", "1.27", "1.28", "1.34", "1.38", "1.39"):
        body = _body(version)
        yield Case(f"claim at {version}", f"PUT {_NEW}", body, version=version)
        yield Case(f"claim at {version} with more", f"PUT {_NEW}", {**body, "pony": 1},
                   version=version)
        for name in sorted(body):
            yield Case(f"claim at {version} without {name}", f"PUT {_NEW}", {
                key: value for key, value in body.items() if key != name}, version=version)
        for empty in ([], {}):
            yield Case(f"claim {empty} at {version}", f"PUT {_NEW}", {
                **body, "allocations": empty}, version=version)
            yield Case(f"claim {empty} of what is held at {version}", f"PUT {_OLD}", {
                **_body(version, **({"consumer_generation": 1} if "consumer_generation" in body
                                    else {})), "allocations": empty}, version=version)
        yield Case(f"consumer at {version}", f"GET {_OLD}", version=version)
        yield Case(f"typed consumer at {version}", "GET /allocations/<typed>", version=version)
        yield Case(f"no consumer at {version}", f"GET {_NEW}", version=version)
        yield Case(f"free at {version}, of the leaf", f"DELETE {_OLD}", version=version)


def _claims_of_any_kind():
    for what, changes in (
            ("a generation", {"consumer_generation": 1}),
            ("a generation of text", {"consumer_generation": "1"}),
            ("a negative generation", {"consumer_generation": -1}),
            ("an empty project", {"project_id": ""}),
            ("a long project", {"project_id": 256 * "x"}),
            ("a number for a user", {"user_id": 1}),
            ("a type in small letters", {"consumer_type": "instance"}),
            ("an empty type", {"consumer_type": ""}),
            ("a long type", {"consumer_type": 256 * "X"}),
            ("the type unknown", {"consumer_type": "unknown"}),
            ("another type", {"consumer_type": "PONY_<mark>"}),
            ("mappings", {"mappings": {"": ["<leaf>"], "_A": ["<leaf>"]}}),
            ("empty mappings", {"mappings": {}}), ("a mapping to nothing", {"mappings": {"": []}}),
            ("a mapping to text", {"mappings": {"": "<leaf>"}}),
            ("a mapping to ponies", {"mappings": {"": ["pony"]}}),
            ("a missing provider", {"allocations": {"<missing>": {"resources": {"VGPU": 1}}}}),
            ("a bad provider", {"allocations": {"pony": {"resources": {"VGPU": 1}}}}),
            ("a provider generation", {"allocations": {
                "<leaf>": {"generation": 77, "resources": {"VGPU": 1}}}}),
            ("no resources", {"allocations": {"<leaf>": {"resources": {}}}}),
            ("more of a provider", {"allocations": {
                "<leaf>": {"resources": {"VGPU": 1}, "pony": 1}}}),
            ("no amount", {"allocations": {"<leaf>": {"resources": {"VGPU": 0}}}}),
            ("too much", {"allocations": {"<leaf>": {"resources": {"VGPU": 4}}}}),
            ("no class", {"allocations": {"<leaf>": {"resources": {"CUSTOM_PONY": 1}}}}),
            ("a class in small letters", {"allocations": {"<leaf>": {"resources": {"vgpu": 1}}}}),
            ("no inventory", {"allocations": {"<leaf>": {"resources": {"VCPU": 1}}}}),
            ("two providers", {"allocations": {
                **_DICT, "<root>": {"resources": {"VCPU": 1}}}}),
            ("a step that is broken", {"allocations": {"<full>": {"resources": {"DISK_GB": 7}}}}),
            ("the older form", {"allocations": _LIST})):
        yield Case(f"claim with {what}", f"PUT {_NEW}", _body("1.39", **changes))
    for consumer in ("pony", "0123456789abcdef0123456789abcdef"):
        yield Case(f"claim for {consumer}", f"PUT /allocations/{consumer}", _body("1.39"))
    for what, changes in (
            ("the current generation", {"consumer_generation": 1}),
            ("a stale generation", {"consumer_generation": 5}), ("null", {}),
            ("another project", {"consumer_generation": 1, "project_id": "<mark>"}),
            ("another type", {"consumer_generation": 1, "consumer_type": "PONY_<mark>"}),
            ("more", {"consumer_generation": 1, "allocations": {
                "<leaf>": {"resources": {"VGPU": 2}}}}),
            ("too much", {"consumer_generation": 1, "allocations": {
                "<leaf>": {"resources": {"VGPU": 5}}}})):
        yield Case(f"change a claim with {what}", f"PUT {_OLD}", _body("1.39", **changes))
    yield Case("change a claim at 1.12", f"PUT {_OLD}", _body("1.12", project_id="<mark>"),
               version="1.12")


def _many_claims():
    path = "/allocations"
    yield Case("POST claims at 1.12", f"POST {path}", {"<missing>": _body("1.12")},
               version="1.12")
    for version in ("1.13", "1.28", "1.34", "1.38"):
        yield Case(f"POST claims at {version}", f"POST {path}", {
            "<missing>": _body(version), "<owned>": _body(version, allocations={}, **(
                {"consumer_generation": 1} if version != "1.13" else {}))}, version=version)
        for name in sorted(_body(version)):
            yield Case(f"POST claims at {version} without {name}", f"POST {path}", {
                "<missing>": {key: value for key, value in _body(version).items()
                              if key != name}}, version=version)
    for what, body in (
            ("nothing", {}), ("a list", []), ("a bad consumer", {"pony": _body("1.39")}),
            ("what fits only once", {
                "<missing>": _body("1.39"), "<aggregate>": _body("1.39", allocations={
                    "<leaf>": {"resources": {"VGPU": 3}}})}),
            ("what fits after it is freed", {
                "<missing>": _body("1.39", allocations={"<leaf>": {"resources": {"VGPU": 4}}}),
                "<owned>": _body("1.39", allocations={}, consumer_generation=1)}),
            ("a stale generation", {"<owned>": _body("1.39", consumer_generation=7)}),
            ("null for what is there", {"<owned>": _body("1.39")}),
            ("a generation of nothing", {"<missing>": _body("1.39", consumer_generation=3)}),
            ("a missing provider", {"<missing>": _body("1.39", allocations={
                "<aggregate>": {"resources": {"VGPU": 1}}})}),
            ("no class", {"<missing>": _body("1.39", allocations={
                "<leaf>": {"resources": {"CUSTOM_PONY": 1}}})}),
            ("no inventory", {"<missing>": _body("1.39", allocations={
                "<leaf>": {"resources": {"VCPU": 1}}})})):
        yield Case(f"POST claims with {what}", f"POST {path}", body)
    yield Case("GET /allocations at 1.39", f"GET {path}")


def _usages():
    yield Case("usages before 1.9", "GET /usages?project_id=<project>", version="1.8")
    for version in ("1.9", "1.14", "1.15", "1.37", "1.38", "1.39"):
        for query in ("project_id=<project>", "project_id=<project>&user_id=<user>",
                      "project_id=<project>&user_id=nobody", "project_id=<mark>", "",
                      "user_id=<user>", "project_id=", "project_id=<project>&pony=1",
                      "project_id=<project>&consumer_type=INSTANCE"):
            yield Case(f"usages of {query} at {version}", f"GET /usages?{query}",
                       version=version)
    for kind in ("all", "unknown", "PONY", "pony", "allx", "", 256 * "X"):
        yield Case(f"usages of type {kind[:20]!r}",
                   f"GET /usages?project_id=<project>&consumer_type={kind}")
    for roles, project in (("reader", "<project>"), ("reader", "<mark>"), ("", "<project>"),
                           ("service", "<mark>")):
        yield Case(f"usages for {roles!r} of {project}", "GET /usages?project_id=<project>",
                   headers={"x-auth-token": "somebody", "x-roles": roles,
                            "x-project-id": project})


def _reshaping():
    records = {"<root>": {"resource_provider_generation": 2, "inventories": {
                   "VCPU": {"total": 8}, "VGPU": {"total": 4}}},
               "<leaf>": {"resource_provider_generation": 2, "inventories": {}}}
    moved = _body("1.39", consumer_generation=1,
                  allocations={"<root>": {"resources": {"VGPU": 1}}})
    good = {"inventories": records, "allocations": {"<owned>": moved}}
    service = {"x-roles": "admin,service"}

    def case(what, body, **how):
        return Case(f"reshape {what}", "POST /reshaper", body, headers=service, **how)

    yield case("before 1.30", good, version="1.29")
    yield case("at 1.39", good)
    yield case("at 1.30", {"inventories": records, "allocations": {"<owned>": {
        key: value for key, value in moved.items() if key != "consumer_type"}}}, version="1.30")
    for what, changes in (
            ("without moving", {"allocations": {}}), ("of no inventories", {"inventories": {}}),
            ("of a stale provider", {"inventories": {
                **records, "<root>": {**records["<root>"], "resource_provider_generation": 7}}}),
            ("of a stale consumer", {"allocations": {"<owned>": {
                **moved, "consumer_generation": 9}}}),
            ("of a missing provider", {"inventories": {"<missing>": records["<leaf>"]}}),
            ("to a missing provider", {"allocations": {"<owned>": {
                **moved, "allocations": {"<missing>": {"resources": {"VGPU": 1}}}}}}),
            ("of no class", {"inventories": {"<leaf>": {
                **records["<leaf>"], "inventories": {"CUSTOM_PONY": {"total": 1}}}}}),
            ("of a name that no class has", {"inventories": {"<leaf>": {
                **records["<leaf>"], "inventories": {"vgpu": {"total": 1}}}}}),
            ("of such a name at another generation", {"inventories": {"<leaf>": {
                **records["<leaf>"], "resource_provider_generation": 77,
                "inventories": {"vgpu": {"total": 1}}}}}),
            ("that does not fit", {"allocations": {"<owned>": {
                **moved, "allocations": {"<root>": {"resources": {"VGPU": 5}}}}}}),
            ("with more", {"pony": 1}), ("of a list", {"allocations": []}),
            ("with more reserved than there is", {"inventories": {
                **records, "<leaf>": {**records["<leaf>"], "inventories": {
                    "DISK_GB": {"total": 1, "reserved": 2}}}}}),
            ("without a generation", {"inventories": {"<leaf>": {"inventories": {}}}})):
        yield case(what, {**good, **changes})
    yield case("without allocations", {"inventories": records})
    yield Case("reshape as an administrator", "POST /reshaper", good)
    yield Case("GET /reshaper", "GET /reshaper")


GROUPS = (_claiming, _claims_of_any_kind, _many_claims, _usages, _reshaping)
