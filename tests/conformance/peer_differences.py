# SPDX-License-Identifier: Apache-2.0
"""The tests of the peer that fail here on purpose, each with the reason.

A test that is listed and passes fails the run: the list can only shrink.
"""

#: dict of reason to dict of gabbi file to the names of tests
FAILURES = {
    "every change of a provider raises its generation, and nothing else does": {
        "allocations": (
            "check usages", "check allocations for the resource provider",
            "check allocations by consumer id", "check allocations by different consumer id"),
        "inventory": (
            "get inventories after deletions", "post an inventory again",
            "delete all inventory with put", "get generation after deletion"),
        # A request that names a generation is refused, and what it would have done is missing.
        "consumer-types-1.38": (
            "reshaper accepts consumer type", "confirm reshaped allocations"),
        "reshaper": (
            "get usages on child after move", "consolidate inventory and allocations",
            "get usages on parent after move back", "get usages on child after move back",
            "reshape with mappings"),
        "resource-provider": (
            "update a resource provider's name", "add traits to a provider",
            "filter providers with a trait some of them have",
            "list providers with 'required' parameter filters cumulatively with in_tree",
            "list providers forbidden 1.22", "multiple forbidden")},
    "before 1.5 the specification refuses a capacity below what is used": {
        "with-allocations": ("change inventory despite capacity exceeded",)},
    "httpx, which sends the requests, refuses to send a wrong content-length": {
        "basic-http": ("bad content length not int",)},
}


def mark(file, tests):
    """Mark the tests of a file that fail on purpose.

    :param file: str, the name of a gabbi file without its suffix
    :param tests: list of dict, the file's tests
    """
    failures = {name for files in FAILURES.values() for name in files.get(file, ())}
    for test in tests:
        if test["name"] in failures:
            test["xfail"] = True
