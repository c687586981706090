# SPDX-License-Identifier: Apache-2.0
"""The query of ``GET /allocation_candidates``: groups, and what concerns all of them.

The order of the checks is OpenStack Placement's: parameters of the whole request, each group, how
the groups belong together.
"""

import dataclasses
import itertools

from placement_rpc.api import CandidateGroup, CandidatesRequest
from placement_rpc.http import bodies, errors, names, request_groups
from placement_rpc.http.errors import BadRequest
from placement_rpc.schemas import allocation_candidate, common

# The first microversions with traits that are forbidden, and with groups without resources.
_FORBIDDEN_TRAITS, _WITHOUT_RESOURCES = (1, 22), (1, 36)
# The microversion of the traits of ``root_required``, which has no ``in:`` at any.
_ROOT_TRAITS = (1, 38)
_FIRST = bodies.compiled(allocation_candidate.FIRST)
# How many groups an error names.
_NAMED = 20


class BadValue(BadRequest):
    code = "placement.query.bad_value"


class MissingValue(BadRequest):
    code = "placement.query.missing_value"


class DuplicateKey(BadRequest):
    code = "placement.query.duplicate_key"


def parse(query, version):
    """Return the :class:`placement_rpc.api.CandidatesRequest` of a query.

    :param query: :class:`placement_rpc.http.queries.Query` that the schema of the microversion
        admits
    :param version: tuple of int, the microversion
    :raises BadRequest: if a value is malformed, or the groups do not belong together
    :raises ResourceClassNotFound: if no class can have one of the names
    :raises TraitNotFound: if no trait can
    """
    bodies.check(_FIRST, {name: query.first(name) for name in query},
                 "Invalid query string parameters")
    required, forbidden = _root(query)
    same_subtree = [_suffixes(value) for value in query.all("same_subtree")]
    groups = request_groups.groups(query, version)
    if version >= _WITHOUT_RESOURCES:
        _check_suffixes(groups, {suffix for each in same_subtree for suffix in each})
    else:
        _check_resources(groups)
    if version >= _FORBIDDEN_TRAITS:
        _check_forbidden(groups)
    policy = query.first("group_policy")
    if policy is None and len(groups.keys() - {""}) > 1:
        raise BadRequest(reason='The "group_policy" parameter is required when specifying more '
                                'than one "resources{N}" parameter.')
    _check_names((*required, *forbidden), groups.values())
    with errors.too_many_values():
        return CandidatesRequest(
            groups=[CandidateGroup(suffix=suffix, **dataclasses.asdict(group))
                    for suffix, group in groups.items()],
            group_policy=policy, same_subtree=same_subtree, root_required=required,
            root_forbidden=forbidden, limit=_limit(query.first("limit")))


def _limit(text):
    if text is None:
        return None
    # Any larger one is no limit, however many digits it has.
    return common.MAX_INT if len(text) > len(str(common.MAX_INT)) else min(
        int(text), common.MAX_INT)


def _root(query):
    """Return the traits that the root must have, and those that it must not have."""
    values = query.all("root_required")
    if len(values) > 1:
        raise DuplicateKey(
            reason="Query parameter 'root_required' may be specified only once.")
    required, forbidden = request_groups.traits(values, _ROOT_TRAITS)
    required = [name for name, in required]
    both = sorted(set(required) & set(forbidden))
    if both:
        raise BadValue(reason="Conflicting required and forbidden traits found in "
                              f"root_required: {_listed(both)}")
    return required, forbidden


def _suffixes(value):
    """Return the suffixes that a ``same_subtree`` names, each once."""
    found = list(dict.fromkeys(suffix.strip() for suffix in value.split(",")))
    if "" in found:
        raise BadValue(reason="Empty string (unsuffixed group) can not be specified in "
                              "`same_subtree`")
    return found


def _check_suffixes(groups, together):
    """Check that ``same_subtree`` names groups, among them each that has no resources.

    :param together: set of the suffixes that it names
    """
    without = [suffix for suffix, group in groups.items() if not group.resources]
    if len(without) == len(groups):
        raise MissingValue(
            reason="There must be at least one resources or resources[$S] parameter.")
    alone = [suffix for suffix in without if suffix not in together]
    if alone:
        raise BadValue(reason="Resourceless suffixed group request should be specified in "
                              f"`same_subtree` query param: bad group(s) - {_listed(alone)}.")
    unknown = sorted(together - groups.keys())
    if unknown:
        raise BadValue(reason="Real suffixes should be specified in `same_subtree`: "
                              f"{_listed(unknown)} not found in {_listed(groups)}.")


def _check_resources(groups):
    """Check that each group has resources."""
    without = {suffix: group for suffix, group in groups.items() if not group.resources}
    traits = [f"required{suffix}" for suffix, group in without.items() if group.required]
    if traits:
        raise BadRequest(reason="All traits parameters must be associated with resources.  Found "
                                f"the following orphaned traits keys: {_listed(traits)}")
    aggregates = [f"member_of{suffix}" for suffix, group in without.items()
                  if group.member_of or group.not_member_of]
    if aggregates:
        raise BadRequest(
            reason="All member_of parameters must be associated with resources. Found the "
                   f"following orphaned member_of keys: {_listed(aggregates)}")
    if without:
        raise BadRequest(reason="All request groups must specify resources.")
    if not groups:
        raise BadRequest(reason="At least one request group (`resources` or `resources{$S}`) is "
                                "required.")


def _check_forbidden(groups):
    """Check that no group forbids all traits of a set of which it requires one."""
    wrong = []
    for suffix, group in groups.items():
        forbidden = set(group.forbidden)
        wrong += [f"required{suffix}: ({', '.join(any_of)})"
                  for any_of in group.required if forbidden.issuperset(any_of)]
    if wrong:
        raise BadRequest(reason="Conflicting required and forbidden traits found in the "
                                f"following traits keys: {_listed(sorted(wrong))}")


def _check_names(root_traits, groups):
    """Check names that no class and no trait can have, in the order in which they are resolved."""
    names.check_traits(root_traits)
    for group in groups:
        names.check_classes(group.resources)
        names.check_traits(itertools.chain(*group.required, group.forbidden))


def _listed(texts):
    """Return the beginning of a list, for an error."""
    return ", ".join(itertools.islice(texts, _NAMED))
