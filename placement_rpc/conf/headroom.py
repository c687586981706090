# SPDX-License-Identifier: Apache-2.0
"""Options of the requests whose headroom is a metric."""

import re
from typing import NamedTuple

from oslo_config import cfg, types

GROUP = cfg.OptGroup("headroom", title="Requests whose headroom is exported as a metric")

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_AMOUNT = re.compile(r"([A-Z0-9_]{1,255}):([1-9][0-9]{0,9})", re.ASCII)
_LARGEST = 2 ** 31 - 1


class NamedRequest(NamedTuple):
    """A request with a name: ``resources`` maps resource class to amount."""

    name: str
    resources: dict[str, int]

    def __str__(self):
        return f"{self.name}=" + ",".join(
            f"{resource_class}:{amount}" for resource_class, amount in self.resources.items())


class NamedRequestType(types.ConfigType):
    """A name and amounts, ``NAME=CLASS:AMOUNT,CLASS:AMOUNT``."""

    def __init__(self):
        super().__init__(type_name="NAME=CLASS:AMOUNT,...")

    def __call__(self, value):
        """Return the :class:`NamedRequest` of a text.

        :raises ValueError: if the text is not one
        """
        if isinstance(value, NamedRequest):
            return value
        name, _, amounts = value.strip().partition("=")
        pairs = [_AMOUNT.fullmatch(each.strip()) for each in amounts.split(",")]
        resources = {pair[1]: int(pair[2]) for pair in pairs if pair}
        if not _NAME.fullmatch(name) or len(resources) < len(pairs) or (
                max(resources.values()) > _LARGEST):
            raise ValueError(
                f"{value[:200]!r} is not of the form NAME=CLASS:AMOUNT,CLASS:AMOUNT")
        return NamedRequest(name, resources)

    def _formatter(self, value):
        return str(value)

    def __repr__(self):
        return "NamedRequest"

    def __eq__(self, other):
        return type(self) is type(other)

    def __hash__(self):
        return hash(type(self))


OPTS = [
    cfg.MultiOpt(
        "request", item_type=NamedRequestType(),
        sample_default="m1.large=VCPU:2,MEMORY_MB:4096",
        help="A request whose headroom is a metric: how many more such requests fit, in all and "
             "in each aggregate. It has a name, which is a label of the metric, and amounts of "
             "resource classes, which a tree of providers, with those that share with it, has "
             "to have. The option can be repeated. Each request costs a few milliseconds of "
             "processor time for each scrape of a worker's metrics, up to 50 in a fleet of "
             "100,000 compute nodes. Metrics are served by [metrics] port, and by the HTTP "
             "facade only with [metrics] http_fleet."),
]
