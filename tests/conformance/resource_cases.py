# SPDX-License-Identifier: Apache-2.0
"""Requests on providers and classes whose answers are compared."""

from tests.conformance.case import Case

_ALL, _ONE = "/resource_providers", "/resource_providers/<full>"


def _creating():
    own = {"name": "<name>", "uuid": "<missing>"}
    yield Case("create", f"POST {_ALL}", own)
    for version in ("1.0", "1.1", "1.2", "1.3"):
        yield Case(f"create at {version}", f"POST {_ALL}", own, version=version)
    yield Case("create without a uuid", f"POST {_ALL}", {"name": "<name>"}, whole=False)
    for what, change in (
            ("the name of another", {"name": "full <full>"}),
            ("the uuid of another", {"uuid": "<full>"}),
            ("the uuid in capitals", {"uuid": "<FULL>"}),
            ("a bad uuid", {"uuid": "pony"}), ("an empty uuid", {"uuid": ""}),
            ("a uuid without dashes", {"uuid": "0123456789abcdef0123456789abcdef"}),
            ("null for a uuid", {"uuid": None}), ("an empty name", {"name": ""}),
            ("a blank name", {"name": " "}), ("a name with blanks", {"name": " <name> "}),
            ("a name of 200", {"name": "<name>" + 163 * "x"}),
            ("a name of 201", {"name": 201 * "x"}), ("a number for a name", {"name": 1}),
            ("null for a name", {"name": None}), ("another alphabet", {"name": "имя <name> 名"}),
            ("an unknown key", {"pony": 1}), ("a parent", {"parent_provider_uuid": "<full>"})):
        yield Case(f"create with {what}", f"POST {_ALL}", {**own, **change})
    yield Case("create without a name", f"POST {_ALL}", {"uuid": "<missing>"})


def _changing():
    yield Case("show", f"GET {_ONE}")
    yield Case("show a missing one", f"GET {_ALL}/<missing>")
    yield Case("rename", f"PUT {_ONE}", {"name": "<name>"})
    yield Case("rename at 1.0", f"PUT {_ONE}", {"name": "<name>"}, version="1.0")
    yield Case("rename to its own name", f"PUT {_ONE}", {"name": "full <full>"})
    yield Case("rename to another's", f"PUT {_ONE}", {"name": "empty <empty>"})
    yield Case("rename a missing one", f"PUT {_ALL}/<missing>", {"name": "<name>"})
    yield Case("rename to nothing", f"PUT {_ONE}", {"name": ""})
    yield Case("rename without a name", f"PUT {_ONE}", {})
    yield Case("change the uuid", f"PUT {_ONE}", {"name": "<name>", "uuid": "<missing>"})
    yield Case("rename, bad uuid", f"PUT {_ALL}/pony", {"name": "<name>"})
    yield Case("delete", f"DELETE {_ALL}/<empty>")
    yield Case("delete with a body", f"DELETE {_ALL}/<empty>", {})
    yield Case("delete what is used", f"DELETE {_ONE}")
    yield Case("delete a missing one", f"DELETE {_ALL}/<missing>")
    yield Case("delete, bad uuid", f"DELETE {_ALL}/pony")


def _listing():
    for query in (
            "name=full%20<full>", "name=full+<full>", "name=<name>", "name=", "name",
            "uuid=<full>", "uuid=<FULL>", "uuid=<missing>", "uuid=pony", "uuid=",
            "uuid=<full>&name=full%20<full>", "uuid=<full>&name=<name>", "pony=1&uuid=<full>",
            "uuid=<full>&uuid=<full>", "uuid=<full>&uuid=<empty>", "name=a&name=b",
            "member_of=<aggregate>", "member_of=in:<aggregate>",
            "member_of=in:<aggregate>,<missing>", "member_of=<missing>", "member_of=",
            "member_of=pony", "member_of=in:", "member_of=in:pony",
            "member_of=<aggregate>,<missing>", "member_of=in:<aggregate>,",
            "member_of=<aggregate>&member_of=<aggregate>", "member_of=!<aggregate>",
            "member_of=<aggregate>&uuid=<grouped>", "limit=1", "in_tree=<full>",
            "required=HW_CPU_X86_VMX",
            "uuid=<full>&", "&uuid=<full>", "uuid=<full>;name=x", "Uuid=<full>"):
        # What earlier requests have left is in the list unless it is asked for something else.
        yield Case(f"list {query}", f"GET {_ALL}?{query}", whole="<" in query)
    for amounts in (
            "VCPU:1", "VCPU:8", "VCPU:9", "VCPU:0", "VCPU", "VCPU:", "VCPU:x", "VCPU:-1",
            "VCPU:1.5", "VCPU:1,VCPU:2", "VCPU:1,MEMORY_MB:100", "VCPU:1,", ",", ",VCPU:1",
            "VCPU:1 ", "VCPU:%201",
            "VCPU:1,,MEMORY_MB:1", "PONY:1", "CUSTOM_PONY:1", "vcpu:1", "", ":", "DISK_GB:7",
            "DISK_GB:3", "DISK_GB:25", "DISK_GB:20", "DISK_GB:1000", "<used>:1", "<free>:1",
            "VCPU:99999999999999999999", "VCPU:2147483647", "VCPU:2147483648",
            "VCPU=1", "VCPU:1:2", "VCPU:0x1", "VCPU:\u0663", "VCPU:%2B1", "VCPU:1_0",
            "MEMORY_MB:1500", "MEMORY_MB:1001"):
        query = amounts if amounts.isascii() else "VCPU:%D9%A3"
        yield Case(f"list with {amounts!r}", f"GET {_ALL}?uuid=<full>&resources={query}")
    yield Case("list with resources twice", f"GET {_ALL}?resources=VCPU:1&resources=VCPU:1",
               whole=False)
    yield Case("list with all", f"GET {_ALL}?resources=VCPU:1&member_of=<aggregate>")
    yield Case("list at 1.0", f"GET {_ALL}", version="1.0", whole=False)
    yield Case("list at 1.4", f"GET {_ALL}", whole=False)
    yield Case("member_of at 1.2", f"GET {_ALL}?member_of=<aggregate>", version="1.2")
    yield Case("member_of at 1.3", f"GET {_ALL}?member_of=<aggregate>", version="1.3")
    yield Case("resources at 1.3", f"GET {_ALL}?resources=VCPU:1", version="1.3")
    yield Case("query elsewhere", f"GET {_ONE}?pony=1")
    yield Case("query of inventories", f"GET {_ONE}/inventories?pony=1")
    yield Case("query of usages", f"GET {_ONE}/usages?pony=1")
    yield Case("query of classes", "GET /resource_classes/VCPU?pony=1")
    yield Case("query of allocations", "GET /allocations/<consumer>?pony=1")
    yield Case("query when creating", f"POST {_ALL}?pony=1", {
        "name": "<name>", "uuid": "<missing>"})


def _aggregates():
    path = f"{_ONE}/aggregates"
    for version in ("1.1", "1.4"):
        yield Case(f"aggregates at {version}", f"GET {_ALL}/<grouped>/aggregates",
                   version=version)
        yield Case(f"set aggregates at {version}", f"PUT {path}", ["<missing>", "<aggregate>"],
                   version=version)
    yield Case("aggregates of none", f"GET {_ALL}/<empty>/aggregates")
    yield Case("aggregates of a missing one", f"GET {_ALL}/<missing>/aggregates")
    yield Case("set aggregates of a missing one", f"PUT {_ALL}/<missing>/aggregates", [])
    for what, body in (
            ("no aggregates", []), ("an object", {"aggregates": []}), ("a text", "<aggregate>"),
            ("one twice", ["<missing>", "<missing>"]), ("a bad uuid", ["pony"]), ("a number", [1]),
            ("capitals", ["<FULL>"]), ("no dashes", ["0123456789abcdef0123456789abcdef"]),
            ("the newer form", {"aggregates": ["<missing>"], "resource_provider_generation": 1})):
        yield Case(f"set {what} as aggregates", f"PUT {path}", body)


def _classes():
    path = "/resource_classes"
    yield Case("classes", f"GET {path}", version="1.2", whole=False)
    yield Case("classes, another query", f"GET {path}?pony=1", whole=False)
    for name in ("VCPU", "<used>", "CUSTOM_PONY", "PONY", "vcpu", "CUSTOM_%20", "%20", "custom_x"):
        yield Case(f"class {name}", f"GET {path}/{name}", version="1.2")
        yield Case(f"delete class {name}", f"DELETE {path}/{name}")
    yield Case("delete a class", f"DELETE {path}/<free>")
    for name in ("<used>_2", "<used>", "VCPU", "CUSTOM_", "CUSTOM", "PONY", "custom_pony",
                 "CUSTOM_pony", "CUSTOM_PONY!", "", " CUSTOM_A", "CUSTOM_A ", "CUSTOM_A\n", 1,
                 None,
                 "CUSTOM_" + 248 * "X", "CUSTOM_" + 249 * "X"):
        shown = f"{name!r}"[:20] + f" of {len(f'{name}')}"
        yield Case(f"create class {shown}", f"POST {path}", {"name": name}, version="1.2")
        yield Case(f"rename a class to {shown}", f"PUT {path}/<free>", {"name": name},
                   version="1.2")
    yield Case("create a class with more", f"POST {path}", {"name": "<used>_2", "pony": 1})
    yield Case("create a class without a name", f"POST {path}", {})
    yield Case("rename a class to its own name", f"PUT {path}/<free>", {"name": "<free>"})
    yield Case("rename a used class", f"PUT {path}/<used>", {"name": "<used>_2"}, version="1.4")
    yield Case("rename VCPU", f"PUT {path}/VCPU", {"name": "<free>_2"})
    yield Case("rename a missing class", f"PUT {path}/CUSTOM_PONY", {"name": "<free>_2"})
    yield Case("rename without a body", f"PUT {path}/<free>")


GROUPS = (_creating, _changing, _listing, _aggregates, _classes)
