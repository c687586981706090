# SPDX-License-Identifier: Apache-2.0
"""Explain which groups and rules of a request fail in a tree."""

import dataclasses
import functools
from collections.abc import Sequence

from placement_rpc.candidates import capacity as rule
from placement_rpc.candidates.dependent_trees import has_candidate
from placement_rpc.candidates.explanation import any_of, inventory_reasons, reason
from placement_rpc.candidates.query import Group, GroupsQuery
from placement_rpc.candidates.tree_views import NodeView, TreeView
from placement_rpc.objects.explanation import Explanation, ExplanationList


def explain(query: GroupsQuery, views: Sequence[TreeView]) -> ExplanationList:
    """Explain for each tree which rules a request fails."""
    return ExplanationList(objects=[_explained(query, view) for view in views])


def _explained(query, view):
    reasons = _root_reasons(query, view.root)
    for group in query.groups:
        reasons += _group_reasons(group, view)
    if not reasons:
        reasons = _joint_reasons(view)
    return Explanation(provider_uuid=view.root.uuid, name=view.root.name,
                       generation=view.generation, fits=not reasons, reasons=reasons)


def _of(group: Group | None, node: NodeView | None, reasons: list[dict]) -> list[dict]:
    """Return reasons with the group that they are about, and the provider."""
    return [{**each, "group": group and group.suffix, "provider_uuid": node and node.uuid}
            for each in reasons]


def _root_reasons(query: GroupsQuery, root: NodeView) -> list[dict]:
    missing = [name for name in query.root_required if name not in root.traits]
    found = [name for name in query.root_forbidden if name in root.traits]
    return _of(None, root, [reason("root_required", f"the root does not have {name}")
                            for name in missing]
               + [reason("root_forbidden", f"the root has {name}") for name in found])


def _group_reasons(group: Group, view: TreeView) -> list[dict]:
    if group.suffix or not group.amounts:
        return _best(group, view, group.amounts, is_single=True)
    is_single = len(group.amounts) == 1
    reasons = [each for name, amount in group.amounts.items()
               for each in _best(group, view, {name: amount}, is_single)]
    if reasons or is_single:
        return reasons
    able = [node for node in view.nodes
            if any(not _reasons(group, node, view.root, {name: amount}, is_single)
                   for name, amount in group.amounts.items())]
    return [each for names in group.required
            if not any(node.traits.intersection(names) for node in able)
            for each in _of(group, None, [reason(
                "required", f"no provider that could serve the group has {any_of(names)}")])]


def _best(group: Group, view: TreeView, amounts, is_single: bool) -> list[dict]:
    """Return the reasons of the provider that comes closest; none if one can serve the amounts.

    :param amounts: class name to amount, what one provider has to give
    :param is_single: whether this provider has to have all traits of the group
    """
    if not amounts and not group.required and not group.member_of:
        return _of(group, None, [reason(
            "required", "a group without resources is found by a trait or an aggregate, and none "
                        "is asked for")])
    nodes = [node for node in view.nodes if not amounts or node.inventories.keys() & amounts]
    if not nodes:
        return _of(group, None, [reason(
            "inventory", f"no provider of the tree, or that shares with it, has {name}", name,
            amount, 0, amount) for name, amount in amounts.items()])
    found = [(node, _reasons(group, node, view.root, amounts, is_single)) for node in nodes]
    node, reasons = min(found, key=lambda each: (
        len(each[1]), sum(one["by"] or 0 for one in each[1])))
    return _of(group, node, reasons)


def _reasons(group: Group, node: NodeView, root: NodeView, amounts,
             is_single: bool) -> list[dict]:
    """Return a reason for each rule of a group that a provider breaks."""
    reasons = []
    if group.in_tree is not None and group.amounts and (
            group.suffix not in node.in_trees or not (group.suffix or node.is_own)):
        reasons.append(reason("in_tree", f"is not in the tree of {group.in_tree}"))
    # What the root is in, its whole tree is in, but for a group with a suffix. A provider that
    # shares with the tree is not, and may not serve a tree that is in what is forbidden.
    tree = [node] if group.suffix else [node, root]
    near = tree if node.is_own else [node]
    if not any(_is_member(each, group.member_of) for each in near):
        reasons += [reason("member_of", f"is not in {any_of(uuids)}") for uuids in group.member_of
                    if not rule.in_any(node.aggregates, uuids)]
    forbidden = [uuid for uuid in group.not_member_of
                 if any(uuid in each.aggregates for each in tree)]
    if forbidden:
        reasons.append(reason("not_member_of", "is in " + ", ".join(forbidden)))
    if is_single:
        reasons += [reason("required", f"does not have {any_of(names)}")
                    for names in group.required if node.traits.isdisjoint(names)]
    traits = sorted(node.traits.intersection(group.forbidden))
    if traits:
        reasons.append(reason("forbidden", "has " + ", ".join(traits)))
    for name, amount in amounts.items():
        reasons += inventory_reasons(name, amount, node.inventories.get(name))
    return reasons


def _is_member(node, member_of):
    return rule.is_member(functools.partial(rule.in_any, node.aggregates), member_of, ())


def _joint_reasons(view: TreeView) -> list[dict]:
    """Return the rule between groups that fails, if each group can be served by itself."""
    if _can_serve(view, view.rules):
        return []
    for name, some, detail in (
            ("group_policy", dataclasses.replace(view.rules, is_isolated=False),
             "there are not enough different providers for the groups with suffixes"),
            ("same_subtree", dataclasses.replace(view.rules, same_subtree=()),
             "the providers of these groups are not in one subtree"),
            ("required", dataclasses.replace(view.rules, required=()),
             "no choice of providers has all traits together")):
        if some != view.rules and _can_serve(view, some):
            return _of(None, None, [reason(name, detail)])
    return _of(None, None, [reason(
        "capacity", "each group can be served by itself, but not all together")])


def _can_serve(view: TreeView, rules) -> bool:
    return bool(view.columns) and has_candidate(view.columns, rules) is not False
