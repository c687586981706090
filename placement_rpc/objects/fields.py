# SPDX-License-Identifier: Apache-2.0
"""Field types that refuse values of other types.

The types of oslo.versionedobjects convert: Integer makes 5 of ``"5"``, ``5.9`` and ``True``, and
UUID accepts any text with a warning. A mistyped amount must be an error, not a claim of another
amount.
"""

import re
import reprlib
import typing
import uuid

from oslo_versionedobjects import fields

from placement_rpc import exception
from placement_rpc.objects import class_names
from placement_rpc.schemas import common

# The largest amount that the columns can store.
MAX_INT = 2 ** 31 - 1
# uuid.UUID accepts many more spellings.
_UUID = re.compile(
    r"[0-9a-fA-F]{32}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII)
_CANONICAL_UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)
_TRAIT = re.compile(r"[A-Z0-9_]{1,255}")
_CONSUMER_TYPE = re.compile(r"[A-Z0-9_]{1,255}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,50}")
_PART_ID = re.compile(
    rf"{_REQUEST_ID.pattern}(?:#(?:[0-9]{{1,9}}|[A-Za-z0-9_-]{{13}}))?", re.ASCII)

# The suffix of a group of a request for candidates; it may be empty.
_SUFFIX = re.compile(common.SUFFIX)

ObjectField = fields.ObjectField
BooleanField = fields.BooleanField


class ListOfObjectsField(fields.ListOfObjectsField):
    """A list of objects; a field that is set to something else raises InvalidInput."""

    def coerce(self, obj, attr, value):
        try:
            return super().coerce(obj, attr, value)
        except exception.InvalidInput:
            raise
        except ValueError as error:
            raise exception.InvalidInput(what=attr, reason=str(error)) from None


def _error(attr, value, wanted):
    try:
        shown = reprlib.repr(value)
    except ValueError:
        # An int with more digits than Python converts to text.
        shown = f"this {type(value).__name__}"
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return exception.InvalidInput(what=attr, reason=f"{shown} is not {wanted}")


class WholeNumber(fields.FieldType):
    """An int within bounds; floats, bools and text are refused."""

    def __init__(self, minimum=0, maximum=MAX_INT):
        self.minimum = minimum
        self.maximum = maximum

    def coerce(self, obj, attr, value):
        if type(value) is not int:
            raise _error(attr, value, "a whole number")
        if not self.minimum <= value <= self.maximum:
            raise _error(attr, value, f"between {self.minimum} and {self.maximum}")
        return value

    def get_schema(self):
        return {"type": ["integer"], "minimum": self.minimum, "maximum": self.maximum}


class Ratio(fields.FieldType):
    """A number of at most :attr:`maximum`; which ones are allowed depends on the other values."""

    #: The largest number of a column with single precision, as other accounting services have it.
    maximum = 3.40282e+38

    def coerce(self, obj, attr, value):
        if type(value) not in (int, float) or value != value:
            raise _error(attr, value, "a number")
        if not -self.maximum <= value <= self.maximum:
            raise _error(attr, value, f"at most {self.maximum:g}")
        return float(value)

    def get_schema(self):
        return {"type": ["number"], "minimum": -self.maximum, "maximum": self.maximum}


class Text(fields.FieldType):
    """Text of a bounded length without control characters, which could forge log lines."""

    def __init__(self, maximum=255, minimum=1):
        self.maximum = maximum
        self.minimum = minimum

    def coerce(self, obj, attr, value):
        if not isinstance(value, str):
            raise _error(attr, value, "text")
        if not self.minimum <= len(value) <= self.maximum:
            raise _error(
                attr, value, f"between {self.minimum} and {self.maximum} characters long")
        if not value.isprintable():
            raise _error(attr, value, "printable")
        return value

    def get_schema(self):
        return {"type": ["string"], "minLength": self.minimum, "maxLength": self.maximum}


class Name(Text):
    """The name of a provider. MariaDB ignores blanks at its end when it compares names."""

    def __init__(self, maximum=200):
        super().__init__(maximum)


class Uuid(fields.FieldType):
    """A uuid in any usual spelling, or a ``uuid.UUID``, converted to the canonical text."""

    def coerce(self, obj, attr, value):
        if isinstance(value, str):
            if _CANONICAL_UUID.fullmatch(value):
                return value
            if _UUID.fullmatch(value):
                return str(uuid.UUID(value))
        elif isinstance(value, uuid.UUID):
            return str(value)
        raise _error(attr, value, "a uuid")

    def get_schema(self):
        return {"type": ["string"], "format": "uuid"}


class RequestId(fields.FieldType):
    """The id that a client chose for its request.

    :param part: bool, whether it may name an entry of a batch, as ``ID#5``, or another part
    """

    def __init__(self, part=False):
        self._pattern = _PART_ID if part else _REQUEST_ID

    def coerce(self, obj, attr, value):
        if not isinstance(value, str) or not self._pattern.fullmatch(value):
            raise _error(attr, value, "1 to 50 letters, digits or any of . _ : -")
        return value

    def get_schema(self):
        return {"type": ["string"], "pattern": f"^{self._pattern.pattern}$"}


class ClassName(fields.FieldType):
    """The name of a resource class; an old name of the specifications becomes the current one."""

    def coerce(self, obj, attr, value):
        if not isinstance(value, str):
            raise _error(attr, value, "the name of a resource class")
        name = class_names.canonical(value)
        if not class_names.is_name(name):
            raise _error(
                attr, value, "the name of a resource class (A-Z, 0-9 and _, at most 255)")
        return name

    def get_schema(self):
        return {"type": ["string"], "pattern": f"^{class_names.PATTERN.pattern}$"}


def is_trait_name(text: str) -> bool:
    """Return whether a trait can have a text as its name."""
    return _TRAIT.fullmatch(text) is not None


class TraitName(fields.FieldType):
    """The name of a trait."""

    def coerce(self, obj, attr, value):
        if not isinstance(value, str) or not is_trait_name(value):
            raise _error(attr, value, "the name of a trait (A-Z, 0-9 and _, at most 255)")
        return value

    def get_schema(self):
        return {"type": ["string"], "pattern": f"^{_TRAIT.pattern}$"}


class ConsumerType(fields.FieldType):
    """The name of a type of consumers."""

    def coerce(self, obj, attr, value):
        if not isinstance(value, str) or not _CONSUMER_TYPE.fullmatch(value):
            raise _error(attr, value, "the name of a consumer type (A-Z, 0-9 and _, at most 255)")
        return value

    def get_schema(self):
        return {"type": ["string"], "pattern": f"^{_CONSUMER_TYPE.pattern}$"}


class Amounts(fields.FieldType):
    """A mapping of resource class to amount, which is not empty.

    Two spellings of the same class are probably a mistake, so they are refused.
    """

    def __init__(self, maximum=MAX_INT, minimum=1):
        self._name = ClassName()
        self._amount = WholeNumber(minimum=minimum, maximum=maximum)

    def coerce(self, obj, attr, value):
        if not isinstance(value, dict) or not value:
            raise _error(attr, value, "a mapping of resource class to amount")
        amounts = {}
        least, most = self._amount.minimum, self._amount.maximum
        for name, amount in value.items():
            # Standard names and valid amounts need no further call, which takes twice as long.
            key = name if name in class_names.STANDARD_IDS else self._name.coerce(obj, attr, name)
            if key in amounts:
                raise _error(attr, value, f"naming {key} once")
            if type(amount) is not int or not least <= amount <= most:
                amount = self._amount.coerce(obj, f"{attr}[{key}]", amount)
            amounts[key] = amount
        return amounts

    def get_schema(self):
        return {"type": ["object"], "additionalProperties": self._amount.get_schema()}


class Mapping(fields.FieldType):
    """A mapping of uuid to values of one type."""

    def __init__(self, values):
        self._key = Uuid()
        self._values = values

    def coerce(self, obj, attr, value):
        if not isinstance(value, dict):
            raise _error(attr, value, "a mapping")
        result = {}
        for key, item in value.items():
            uuid_ = self._key.coerce(obj, attr, key)
            if uuid_ in result:
                raise _error(attr, key, "named once")
            result[uuid_] = self._values.coerce(obj, f"{attr}[{uuid_}]", item)
        return result

    def get_schema(self):
        return {"type": ["object"], "additionalProperties": self._values.get_schema()}


class Boolean(fields.Boolean):
    """True or False; the library's field takes any value, and the text "false" for True."""

    def coerce(self, obj, attr, value):
        if type(value) is not bool:
            raise _error(attr, value, "true or false")
        return value


class Several(fields.FieldType):
    """A list of values of one type, with bounds on their number."""

    def __init__(self, values, maximum=500, minimum=0):
        self._values = values
        self._maximum = maximum
        self._minimum = minimum

    def coerce(self, obj, attr, value):
        if not isinstance(value, (list, tuple)):
            raise _error(attr, value, "a list")
        if len(value) > self._maximum:
            raise exception.BatchTooLarge(what=attr, limit=self._maximum, size=len(value))
        if len(value) < self._minimum:
            raise _error(attr, value, f"at least {self._minimum} long")
        return [self._values.coerce(obj, f"{attr}[{index}]", item)
                for index, item in enumerate(value)]

    def get_schema(self):
        return {"type": ["array"], "items": self._values.get_schema(),
                "minItems": self._minimum, "maxItems": self._maximum}


class Suffix(fields.FieldType):
    """The suffix that names a group of a request; empty for the group without one."""

    def coerce(self, obj, attr, value):
        if not isinstance(value, str) or not _SUFFIX.fullmatch(value):
            raise _error(attr, value, "a suffix: up to 64 letters, digits, - or _")
        return value

    def get_schema(self):
        return {"type": ["string"], "pattern": common.SUFFIX}


class Mappings(fields.FieldType):
    """A mapping of the groups of a request to the providers that were chosen for each.

    A group is named by its suffix.
    """

    def __init__(self):
        self._suffix = Suffix()
        self._providers = Several(Uuid(), minimum=1)

    def coerce(self, obj, attr, value):
        if not isinstance(value, dict) or not value:
            raise _error(attr, value, "a mapping of suffix to list of uuids")
        for suffix in value:
            self._suffix.coerce(obj, attr, suffix)
        return {suffix: self._providers.coerce(obj, f"{attr}[{suffix[:80]!r}]", uuids)
                for suffix, uuids in value.items()}

    def get_schema(self):
        return {"type": ["object"], "propertyNames": {"pattern": common.SUFFIX},
                "additionalProperties": self._providers.get_schema()}


class Choice(fields.FieldType):
    """One of several words.

    :param words: tuple of str
    """

    def __init__(self, words):
        self._words = words

    def coerce(self, obj, attr, value):
        if value not in self._words:
            raise _error(attr, value, f"one of {', '.join(self._words)}")
        return value

    def get_schema(self):
        return {"type": ["string"], "enum": list(self._words)}


class Json(fields.FieldType):
    """A mapping of JSON values, which is not converted.

    :param contents: what the mapping contains, as keywords of JSON Schema; it describes what is
        sent, and is not checked on receipt
    """

    def __init__(self, contents=None):
        self._contents = contents or {}

    def coerce(self, obj, attr, value):
        if not isinstance(value, dict):
            raise _error(attr, value, "a mapping")
        return value

    def get_schema(self):
        return {"type": ["object"], **self._contents}


def new_uuid() -> str:
    """Return a random uuid."""
    return str(uuid.uuid4())


def field(field_type: fields.FieldType, **kwargs: typing.Any) -> fields.Field:
    """Return a field of a type of this module.

    :param kwargs: nullable, default, read_only
    """
    return _Field(field_type, **kwargs)


class _Field(fields.Field):
    """A field that refuses None as it does other wrong values."""

    def _null(self, obj, attr):
        try:
            return super()._null(obj, attr)
        except ValueError:
            raise exception.InvalidInput(what=attr, reason="it is missing") from None
