# SPDX-License-Identifier: Apache-2.0
"""Requests on inventories from 1.5 on, and errors, which have codes from 1.23 on."""

import functools

from tests.conformance.case import Case as AnyCase

_ALL, _ROOT, _LEAF = ("/resource_providers", "/resource_providers/<root>",
                      "/resource_providers/<leaf>")
_NOBODY = f"{_ALL}/<missing>"
Case = functools.partial(AnyCase, version="1.39")


def _errors():
    for version in ("1.22", "1.23"):
        yield Case(f"an error's code at {version}", f"GET {_NOBODY}", version=version)
        yield Case(f"an unknown address at {version}", "GET /nothing", version=version)
        yield Case(f"another method at {version}", f"PATCH {_ALL}", version=version)
        yield Case(f"a forbidden request at {version}", f"GET {_ALL}", version=version, headers={
            "x-auth-token": "somebody"})
    for what, change in (("name", {"name": "root <root>"}), ("uuid", {"uuid": "<root>"}),
                         ("name and uuid", {"name": "root <root>", "uuid": "<root>"})):
        yield Case(f"create with the {what} of another at 1.39", f"POST {_ALL}", {
            "name": "<name>", "uuid": "<missing>", **change})
    yield Case("rename to the name of another at 1.39", f"PUT {_LEAF}", {"name": "root <root>"})
    yield Case("delete a parent", f"DELETE {_ROOT}")
    yield Case("delete a leaf that is used", f"DELETE {_LEAF}")
    yield Case("create a class that exists at 1.39", "POST /resource_classes", {"name": "<used>"})
    yield Case("delete a used class at 1.39", "DELETE /resource_classes/<used>")
    yield Case("delete VCPU at 1.39", "DELETE /resource_classes/VCPU")


def _inventories():
    path = f"{_LEAF}/inventories"
    record = {"total": 4}
    body = {"resource_provider_generation": 2, "inventories": {"VGPU": record}}
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
    yield Case("remove what is used, and add of no class", f"PUT {path}", {
        **body, "inventories": {"CUSTOM_PONY": record}})
    yield Case("a stale generation of inventories", f"PUT {path}", {
        **body, "resource_provider_generation": 1})
    yield Case("delete a used inventory at 1.39", f"DELETE {path}/VGPU")
    yield Case("delete no inventory at 1.39", f"DELETE {path}/VCPU")
    yield Case("add an inventory that exists at 1.39", f"POST {path}", {
        "resource_class": "VGPU", "total": 1})
    yield Case("add an inventory of no class at 1.39", f"POST {path}", {
        "resource_class": "CUSTOM_PONY", "total": 1})
    yield Case("change no inventory at 1.39", f"PUT {path}/VCPU", {
        "resource_provider_generation": 2, "total": 1})


GROUPS = (_errors, _inventories)
