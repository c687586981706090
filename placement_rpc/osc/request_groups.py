# SPDX-License-Identifier: Apache-2.0
"""Options of commands that take a request with groups, and its body."""

import argparse
import re

from osc_lib import exceptions

from placement_rpc.osc import arguments

_SUFFIX = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


class _Group(argparse.Action):
    """Begins a group: the options of groups that follow belong to it."""

    def __call__(self, parser, namespace, values, option_string=None):
        if values in (group["suffix"] for group in _groups(namespace)):
            raise argparse.ArgumentError(self, f"group {values} is given twice")
        _groups(namespace).append({"suffix": values})


class _OfGroup(argparse.Action):
    """Adds a value to the current group.

    :param adds: callable of the group and of the value
    """

    def __init__(self, adds, **how):
        super().__init__(**how)
        self._adds = adds

    def __call__(self, parser, namespace, values, option_string=None):
        problem = self._adds(_groups(namespace)[-1], values)
        if problem:
            raise argparse.ArgumentError(self, problem)


def _groups(namespace):
    """Return the groups so far; the first one has no suffix."""
    if getattr(namespace, "groups", None) is None:
        namespace.groups = [{"suffix": ""}]
    return namespace.groups


def _suffix(text):
    if not _SUFFIX.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a suffix: up to 64 letters, digits, - or _")
    return text


def _names(text):
    names = [name for name in text.split(",") if name]
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return names


def _resource(group, value):
    name, amount = value
    if name in group.setdefault("resources", {}):
        return f"resource class {name} is given twice; give it once in a group"
    group["resources"][name] = amount
    return None


def _to_list(key):
    """Return how a value becomes an entry of a list of a group."""
    return lambda group, value: group.setdefault(key, []).append(value)


def _to_names(key):
    """Return how values become entries of a list of a group."""
    return lambda group, values: group.setdefault(key, []).extend(values)


def add(parser):
    """Add the options of a request with groups.

    :param parser: :class:`argparse.ArgumentParser`
    """
    for option, metavar, parse, adds, text in (
            ("--resource", "CLASS=AMOUNT", arguments.amount, _resource,
             "requested amount of a resource class; can be repeated"),
            ("--required", "TRAIT[,TRAIT]", _names, _to_list("required"),
             "require one of these traits; can be repeated"),
            ("--forbidden", "TRAIT", str, _to_list("forbidden"),
             "forbid a trait; can be repeated"),
            ("--member-of", "AGG[,AGG]", arguments.aggregates, _to_list("member_of"),
             "require one of these aggregates; can be repeated"),
            ("--not-member-of", "AGG[,AGG]", arguments.aggregates, _to_names("not_member_of"),
             "forbid these aggregates; can be repeated"),
            ("--in-tree", "UUID", arguments.uuid,
             lambda group, value: group.update(in_tree=value),
             "use only the tree of this resource provider")):
        parser.add_argument(option, metavar=metavar, type=parse, action=_OfGroup, adds=adds,
                            default=argparse.SUPPRESS, help=text)
    parser.add_argument("--group", metavar="SUFFIX", type=_suffix, action=_Group,
                        default=argparse.SUPPRESS,
                        help="begin a group that one resource provider has to serve: the options "
                             "above that follow belong to it; can be repeated")
    parser.add_argument("--group-policy", choices=("none", "isolate"),
                        help="isolate: different resource providers serve the groups")
    parser.add_argument("--same-subtree", type=_names, action="append", metavar="SUFFIX,SUFFIX",
                        help="require that the resource providers of these groups are in one "
                             "subtree; can be repeated")
    parser.add_argument("--root-required", action="append", metavar="TRAIT",
                        help="require a trait of the root of the tree; can be repeated")
    parser.add_argument("--root-forbidden", action="append", metavar="TRAIT",
                        help="forbid a trait of the root of the tree; can be repeated")


def body_of(options):
    """Return the body of the request that the options ask for.

    :returns: dict
    :raises osc_lib.exceptions.CommandError: if no group has resources
    """
    groups = [group for group in _groups(options) if group["suffix"] or len(group) > 1]
    if not any(group.get("resources") for group in groups):
        raise exceptions.CommandError("give --resource CLASS=AMOUNT at least once")
    body = {name: getattr(options, name) for name in (
        "group_policy", "same_subtree", "root_required", "root_forbidden")}
    return {"groups": groups, **{name: value for name, value in body.items() if value}}


def flat_body_of(options):
    """Return the body for one resource provider that has all resources; None for more than that.

    :returns: dict of resources and member_of, if nothing else is asked for
    """
    body = body_of(options)
    group = body["groups"][0]
    if body.keys() > {"groups"} or len(body["groups"]) > 1 or group["suffix"] or (
            group.keys() - {"suffix", "resources", "member_of"}):
        return None
    return {name: value for name, value in group.items() if name != "suffix"}
