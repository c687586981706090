# SPDX-License-Identifier: Apache-2.0
"""Latency and processor time of each kind of work against the size of the fleet."""

import re

_SIZED = re.compile(
    r"(?P<what>.*), (?P<size>\d+) (?P<kind>(providers|trees)(, p50|: processor time))$")
_TITLES = {"providers, p50": ("latency", "p50 of a call [ms]"),
           "providers: processor time": ("processor-time", "processor time of a call [ms]"),
           "trees: processor time": ("candidates", "processor time of a request [ms]")}


def draw(results, directory):
    """Draw the figures that were measured at several sizes.

    :param results: list of dicts of name, value, unit, note
    :param directory: :class:`pathlib.Path`
    :returns: list of the files that were written; empty if nothing was measured at several sizes
    """
    lines = {}
    for row in results:
        found = _SIZED.match(row["name"])
        if found and row["unit"] == "ms":
            lines.setdefault(found["kind"], {}).setdefault(found["what"], []).append(
                (int(found["size"]), row["value"]))
    if not lines:
        # Also where matplotlib is not installed.
        return []
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    written = []
    for kind, of_kind in lines.items():
        name, label = _TITLES[kind]
        figure, axes = pyplot.subplots(figsize=(9, 6))
        for what, points in sorted(of_kind.items()):
            style = "--" if what.startswith("openstack-placement") else "-"
            axes.plot(*zip(*sorted(points), strict=True), style, marker="o", label=what)
        axes.set(xscale="log", yscale="log", xlabel=re.match("[a-z]+", kind)[0], ylabel=label)
        axes.grid(True, which="both", alpha=0.3)
        axes.legend(fontsize="small")
        written.append(directory / f"{name}.png")
        figure.tight_layout()
        figure.savefig(written[-1], dpi=100)
        pyplot.close(figure)
    return written
