# SPDX-License-Identifier: Apache-2.0
"""Headroom: how many more requests of a kind fit."""

from placement_rpc.objects import base, fields

#: By what headroom is broken down.
BY = ("aggregate", "trait", "class-limit")
_COUNT = fields.WholeNumber(maximum=2 ** 63 - 1)


@base.PlacementObjectRegistry.register
class Headroom(base.PlacementObject):
    """How many more requests fit, one after the other, until the next one does not.

    ``count`` fit for certain, and no more than ``at_most`` do; the number is exact if the two are
    equal. ``limits`` has a mapping for each resource class of the request, of ``resource_class``,
    ``groups`` (their suffixes) and ``trees``: in how many trees the class binds first, since no
    other class allows fewer requests there.

    ``parts`` has the same by ``aggregate``, by ``trait`` or by ``class-limit``, with the most
    room first, as mappings of ``name``, ``count`` and ``at_most``. For an aggregate, all providers
    of a request are in it, by themselves or by the root of their tree; for a trait, one of them
    has it. These two have ``limits`` too, a mapping of resource class to the number of trees in
    which it binds. For a class, ``count`` is how many would fit by this class alone; ``groups``
    and ``trees`` are as above, and ``left`` is how much of it is free after all that fit.

    ``position`` is the position of an event up to which every change is included.
    """

    # Version 1.0: Initial version
    VERSION = "1.0"

    fields = {
        "count": fields.field(_COUNT),
        "at_most": fields.field(_COUNT),
        "limits": fields.field(fields.Several(fields.Json(), maximum=100_000)),
        "by": fields.field(fields.Choice(BY), nullable=True, default=None),
        "parts": fields.field(fields.Several(fields.Json(), maximum=1_000_000)),
        "position": fields.field(fields.WholeNumber(maximum=2 ** 63 - 1), nullable=True),
    }

    @property
    def is_exact(self) -> bool:
        """Whether exactly ``count`` requests fit."""
        return self.count == self.at_most
