# SPDX-License-Identifier: Apache-2.0
"""What setup.cfg declares, and what that installs."""

import configparser
import pathlib
from importlib import metadata

from packaging import requirements, utils

_FILE = pathlib.Path(__file__).parents[1] / "setup.cfg"
_PROJECT = "placement-rpc"


def sections():
    """Return the requirements of setup.cfg as they stand there: dict of name to list of str.

    The names are ``install_requires`` and those of the extras.
    """
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(_FILE)
    texts = {"install_requires": parser["options"]["install_requires"],
             **parser["options.extras_require"]}
    return {name: text.split("\n")[1:] for name, text in texts.items()}


def lines(name):
    """Return requirements of setup.cfg: list of str.

    :param name: ``install_requires``, or an extra; the extras that it names are included
    """
    found = []
    for line in sections()[name]:
        requirement = requirements.Requirement(line)
        if requirement.name == _PROJECT:
            for extra in sorted(requirement.extras):
                found += lines(extra)
        else:
            found.append(line)
    return found


def installed_with(required):
    """Return the canonical names of the distributions that requirements install.

    :param required: list of str, requirements as in setup.cfg
    """
    found, waiting = set(), [requirements.Requirement(line) for line in required]
    while waiting:
        requirement = waiting.pop()
        key = utils.canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in found:
            continue
        found.add(key)
        try:
            needed = metadata.requires(requirement.name) or ()
        except metadata.PackageNotFoundError:
            # A dependency of another platform or of an optional feature.
            continue
        waiting += [each for each in map(requirements.Requirement, needed) if each.marker is None
                    or any(each.marker.evaluate({"extra": extra})
                           for extra in ("", *requirement.extras))]
    return {name for name, _extras in found}
