# SPDX-License-Identifier: Apache-2.0
"""Random worlds of providers and random queries for candidates.

Both are functions of a source of randomness: ``random.Random(seed)`` for great numbers of them,
or ``hypothesis.strategies.randoms(use_true_random=False)``, whose examples shrink.
"""

import itertools
import random
import uuid

from tests import candidates_model as model

CLASSES = ("VCPU", "MEMORY_MB", "VGPU", "CUSTOM_GOLD")
TRAITS = ("HW_CPU_X86_AVX2", "COMPUTE_NODE", "CUSTOM_FAST", "CUSTOM_NEAR")
_SUFFIXES = ("1", "2", "3", "17")
_NAMED_SUFFIXES = ("_A", "b", "C-1", "1")
_FOCUSES = ("", "", "traits", "aggregates", "in tree", "subtrees", "roots")
# Microversions, where what a query may say or what the answer shows changes.
MINORS = (10, 12, 16, 17, 21, 22, 24, 25, 27, 29, 31, 32, 33, 34, 35, 36, 39)


def check_seeds(count, check):
    """Make a check with each of the first seeds; an error names the seed.

    :param check: callable of ``random.Random``
    """
    for seed in range(count):
        try:
            check(random.Random(seed))
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def _uuid(rng, number):
    """Return a uuid that no other number has, whatever the source of randomness is."""
    return str(uuid.UUID(int=(rng.getrandbits(64) << 64) + number, version=4))


def _some(rng, values, chance):
    return [each for each in values if rng.random() < chance]


def _one_or_more(rng, values, chance):
    return _some(rng, values, chance) or [rng.choice(values)]


def _inventory(rng, is_plain):
    if is_plain:
        return model.Inventory(rng.choice((2, 4, 8, 16)), used=rng.choice((0, 0, 0, 1)))
    found = model.Inventory(
        rng.choice((1, 2, 4, 8, 8, 12, 16, model.MAX_INT)),
        min_unit=rng.choice((1,) * 6 + (2,)), step_size=rng.choice((1,) * 6 + (2, 3)),
        max_unit=rng.choice((model.MAX_INT,) * 6 + (2, 4)),
        allocation_ratio=rng.choice((1.0, 1.0, 1.0, 0.5, 1.5, 16.0)))
    found.reserved = rng.choice((0, 0, 0, 0, 1, found.total // 2, found.total))
    full = min(found.capacity, model.MAX_INT - 1)
    found.used = rng.choice((0, 0, 0, 0, 0, 1, full // 2, full - 1 if full else 0, full, full + 1))
    return found


def world(rng, size=9):
    """Return a random world of one to ``size`` providers; the last class and trait are unused.

    The order of its providers has nothing to do with parents and children.
    """
    aggregates = [_uuid(rng, number) for number in range(3)]
    is_plain, wealth = rng.random() < 0.4, rng.choice((0.4, 0.7, 0.95))
    trait_chance, aggregate_chance = rng.choice((0.3, 0.7)), rng.choice((0.2, 0.5))
    root_chance, share_chance = rng.choice((0.2, 0.5, 0.9)), rng.choice((0, 0, 0.4))
    providers = []
    for number in range(max(rng.randint(1, size), rng.randint(1, size))):
        parent = None
        if providers and rng.random() > root_chance:
            parent = rng.choice(providers).uuid
        traits = set(_some(rng, TRAITS, trait_chance))
        if rng.random() < (share_chance if parent is None else share_chance / 4):
            traits.add(model.SHARES)
        providers.append(model.Provider(
            _uuid(rng, 1000 + number), parent,
            {name: _inventory(rng, is_plain) for name in _some(rng, CLASSES, wealth)}, traits,
            set(_some(rng, aggregates, aggregate_chance))))
    rng.shuffle(providers)
    return model.World(providers, (*CLASSES, "CUSTOM_RARE"),
                       (*TRAITS, model.SHARES, "CUSTOM_UNUSED"))


def aggregates(world):
    """Return all aggregates of a world in a fixed order."""
    return sorted(set(itertools.chain.from_iterable(each.aggregates for each in world.providers)))


def minor(rng):
    """Return a microversion: often the last, otherwise any border."""
    return 39 if rng.random() < 0.5 else rng.choice(MINORS)


def query(rng, world, minor):
    """Return a random query that is valid at a microversion.

    It has much of one kind of filter and little of the others, or it would seldom find anything.
    """
    focus = rng.choice(_FOCUSES)
    has_unsuffixed = minor < 25 or rng.random() < 0.7
    suffixes = list(_NAMED_SUFFIXES if minor >= 33 else _SUFFIXES)
    rng.shuffle(suffixes)
    least = 1 if focus == "subtrees" or not has_unsuffixed else 0
    suffixes = suffixes[:0 if minor < 25 else max(least, rng.choice((0, 0, 1, 1, 2, 2, 3, 4)))]
    if has_unsuffixed:
        suffixes = suffixes[:3]
    groups = [_group(rng, world, suffix, minor, focus) for suffix in suffixes]
    if has_unsuffixed:
        groups.insert(rng.randint(0, len(groups)), _group(rng, world, "", minor, focus))
    found = model.Query(groups, minor=minor)
    if len(suffixes) > 1 or (suffixes and rng.random() < 0.1):
        found.group_policy = rng.choice(("none", "none", "isolate"))
    if minor >= 36 and suffixes:
        for _ in range(rng.choice((1, 1, 2) if focus == "subtrees" else (0, 0, 0, 1))):
            found.same_subtree.append(_one_or_more(rng, suffixes, 0.6))
        _take_resources(rng, found)
    if minor >= 35 and rng.random() < (0.8 if focus == "roots" else 0.04):
        names = rng.sample(TRAITS, rng.randint(1, 2))
        found.root_required, found.root_forbidden = (
            (names[:1], names[1:]) if rng.random() < 0.7 else (names[1:], names[:1]))
    if minor >= 16 and rng.random() < 0.2:
        found.limit = rng.choice((1, 2, 3, 10, 1000))
    return found


def _group(rng, world, suffix, minor, focus):
    classes = _some(rng, CLASSES, 0.2)[:2] if suffix else _some(rng, CLASSES, 0.4)[:3]
    if rng.random() < 0.005:
        classes.append(rng.choice(("CUSTOM_RARE", "CUSTOM_UNKNOWN")))
    rng.shuffle(classes)
    amounts = {name: rng.choice((1, 1, 1, 1, 1, 2, 2, 3, 4))
               for name in classes or [rng.choice(CLASSES)]}
    found = model.Group(suffix, amounts)
    if minor >= 17:
        _add_traits(rng, found, minor, focus == "traits")
    if minor >= 21:
        _add_aggregates(rng, world, found, minor, focus == "aggregates")
    if minor >= 31 and rng.random() < (0.4 if focus == "in tree" else 0.03):
        found.in_tree = (_uuid(rng, 2000) if rng.random() < 0.05
                         else rng.choice(world.providers).uuid)
    return found


def _add_traits(rng, group, minor, is_much):
    if minor >= 22:
        group.forbidden = _some(rng, TRAITS, 0.12 if is_much else 0.03)
    allowed = [each for each in TRAITS if each not in group.forbidden]
    for _ in range(rng.choice((0, 1, 1, 2) if is_much else (0,) * 5 + (1,)) if allowed else 0):
        group.required.append([rng.choice(allowed)])
        if minor >= 39 and rng.random() < 0.4:
            group.required[-1] = list(dict.fromkeys(
                [*group.required[-1], *_one_or_more(rng, TRAITS, 0.3)]))
    if rng.random() < 0.01:
        group.required.append([rng.choice(("CUSTOM_UNUSED", "CUSTOM_UNKNOWN", model.SHARES))])


def _add_aggregates(rng, world, group, minor, is_much):
    known = [*aggregates(world), _uuid(rng, 2001)]
    for _ in range(rng.choice((0, 1, 1, 2) if is_much else (0,) * 9 + (1,))):
        if not group.member_of or minor >= 24:
            group.member_of.append(_one_or_more(rng, known, 0.4))
    if minor >= 32 and rng.random() < (0.3 if is_much else 0.05):
        group.not_member_of = _one_or_more(rng, known, 0.2)


def _take_resources(rng, query):
    """Take the resources of some groups away that ``same_subtree`` names."""
    named = set(itertools.chain.from_iterable(query.same_subtree))
    for group in query.groups:
        others = [each for each in query.groups if each.amounts and each is not group]
        has_filter = (group.required or group.forbidden or group.member_of
                      or group.not_member_of or group.in_tree)
        if group.suffix in named and others and rng.random() < 0.5:
            if not has_filter:
                group.required = [[rng.choice(TRAITS)]]
            group.amounts = {}
