# SPDX-License-Identifier: Apache-2.0
"""Comparison of two services' answers to one request.

The order of a list is free everywhere in Placement's API, so lists are compared as sets whose
elements may occur several times. Links are compared below each service's own address. Of an error,
the status and, if both have one, the code count: its words may differ.
"""

import collections
import dataclasses
import json
from typing import Any, NamedTuple

_VERSION = "openstack-api-version"
# The key by which elements of a list belong together, in the order in which they are tried.
_IDENTITIES = ("uuid", "name", "rel", "id")
_LISTS_OF_NAMES = ("traits", "resource_classes")
_CUSTOM = "CUSTOM_"
_ERROR = 400
_MISSING = object()
_LONGEST = 200


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a service, or the reason why there is none.

    :ivar status: int; None if there is no answer
    :ivar headers: dict of name in lower case to value
    :ivar content: bytes
    :ivar seconds: float, from sending the request to the last byte of the answer
    :ivar failure: str, why there is no answer; None if there is one
    :ivar base: str, the path of the service's address, without a slash at the end
    """

    status: int | None
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    content: bytes = b""
    seconds: float = 0.0
    failure: str | None = None
    base: str = ""

    def body(self) -> Any:
        """Return what counts of the body: a JSON value, or the text of what is not JSON."""
        try:
            value = json.loads(self.content) if self.content else None
        except (ValueError, RecursionError):
            value = self.content.decode("utf-8", "replace")
        if self.status is not None and self.status >= _ERROR:
            return _code(value)
        return _below(value, self.base)


class Difference(NamedTuple):
    """The first difference of two answers.

    :ivar where: str, as in ``body.resource_providers[uuid=...].generation``
    :ivar old: str, what the old service answered there
    :ivar new: str
    """

    where: str
    old: str
    new: str


def first_difference(old: Answer, new: Answer) -> Difference | None:
    """Return the first difference of two answers, or None if they say the same.

    :param old: of the service that is compared with
    :param new: of the other one
    """
    if old.status is None or old.status != new.status:
        return Difference("status", _outcome(old), _outcome(new))
    for name in (_VERSION, "content-type"):
        texts = [_media(each.headers.get(name)) for each in (old, new)]
        # Some of Placement's errors have no version.
        if texts[0] != texts[1] and (old.status < _ERROR or None not in texts):
            return Difference(name, *(_text(each) for each in texts))
    if old.content == new.content:
        return None
    bodies = old.body(), new.body()
    if old.status >= _ERROR and None in bodies:
        return None
    return difference_of(*bodies)


def difference_of(old: Any, new: Any, where: str = "body") -> Difference | None:
    """Return the first difference of two JSON values, or None.

    :param where: str, what the values are
    """
    if canonical(old) == canonical(new):
        return None
    return _narrowed(old, new, where) or Difference(where, _text(old), _text(new))


def newer_names(old: Any, new: Any) -> list[str] | None:
    """Return the standard names that only one of two lists of traits or classes has.

    Each release of a service knows the standard names of its time. None are imported, so they are
    no difference of what the services hold.

    :param old: JSON value of the answer to a list of traits or of resource classes
    :param new: the same of the other service
    :returns: sorted list; None if these are not all that differs
    """
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return None
    for key in _LISTS_OF_NAMES:
        if {*old} == {*new} == {key} and all(isinstance(each[key], list) for each in (old, new)):
            here, there = ({_name(item): item for item in each[key]} for each in (old, new))
            only = {*here} ^ {*there}
            common = [[item for name, item in each.items() if name not in only]
                      for each in (here, there)]
            if any(name.startswith(_CUSTOM) for name in only) or (
                    canonical(common[0]) != canonical(common[1])):
                return None
            return sorted(only)
    return None


def canonical(value: Any) -> str:
    """Return a text that is the same for two JSON values that say the same.

    A text and not a frozen set: a large answer has a million parts, and the garbage collector
    would look at each of them again and again.
    """
    if isinstance(value, dict):
        return f"{{{','.join(sorted([f'{n!r}:{canonical(each)}' for n, each in value.items()]))}}}"
    if isinstance(value, list):
        return f"[{','.join(sorted(map(canonical, value)))}]"
    if isinstance(value, float) and value.is_integer():
        return repr(int(value))
    return repr(value)


def _name(item: Any) -> str:
    return str(item.get("name")) if isinstance(item, dict) else str(item)


def _narrowed(old: Any, new: Any, where: str) -> Difference | None:
    """Return the difference within two values that are not equal; None if they have no parts."""
    if isinstance(old, dict) and isinstance(new, dict):
        # Generations come last: they differ whenever anything else does, and say the least.
        for name in sorted({*old, *new}, key=lambda name: ("generation" in name, name)):
            found = _of_parts(old.get(name, _MISSING), new.get(name, _MISSING), f"{where}.{name}")
            if found:
                return found
    if isinstance(old, list) and isinstance(new, list):
        return _of_lists(old, new, where)
    return None


def _of_parts(old: Any, new: Any, where: str) -> Difference | None:
    if old is _MISSING or new is _MISSING:
        return Difference(where, _text(old), _text(new))
    return difference_of(old, new, where)


def _of_lists(old: list[Any], new: list[Any], where: str) -> Difference | None:
    for key in _IDENTITIES:
        here, there = (_by_key(each, key) for each in (old, new))
        if here is not None and there is not None:
            for name in sorted({*here, *there}):
                found = _of_parts(here.get(name, _MISSING), there.get(name, _MISSING),
                                  f"{where}[{key}={name}]")
                if found:
                    return found
    return _only_in_one(old, new, where)


def _only_in_one(old: list[Any], new: list[Any], where: str) -> Difference | None:
    """Return the difference of lists whose elements have no name: how many each has alone."""
    counts = [collections.Counter(map(canonical, each)) for each in (old, new)]
    texts = []
    for elements, mine, its in ((old, counts[0], counts[1]), (new, counts[1], counts[0])):
        alone = mine - its
        first = next((each for each in elements if canonical(each) in alone), _MISSING)
        texts.append(f"{len(elements)}, of which {alone.total()} only here"
                     + ("" if first is _MISSING else f": {_text(first)}"))
    return Difference(where, *texts)


def _by_key(elements: list[Any], key: str) -> dict[str, Any] | None:
    """Return the elements by a key that identifies them; None if it does not."""
    if not all(isinstance(each, dict) and isinstance(each.get(key), str) for each in elements):
        return None
    found = {each[key]: each for each in elements}
    return found if len(found) == len(elements) else None


def _below(value: Any, base: str) -> Any:
    """Return a JSON value whose links are those below an address.

    :param base: str, the path of the address
    """
    if isinstance(value, dict):
        return {name: item.removeprefix(base) if name == "href" and isinstance(item, str)
                else _below(item, base) for name, item in value.items()}
    return [_below(item, base) for item in value] if isinstance(value, list) else value


def _code(value: Any) -> Any:
    """Return what counts of the body of an error."""
    errors = value.get("errors") if isinstance(value, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    return first.get("code") if isinstance(first, dict) else None


def _media(header: str | None) -> str | None:
    return header and header.partition(";")[0].strip().lower()


def _outcome(answer: Answer) -> str:
    return f"no answer: {answer.failure}" if answer.status is None else str(answer.status)


def _text(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
