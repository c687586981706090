# SPDX-License-Identifier: Apache-2.0
"""constraints.txt, the versions that are installed, fits setup.cfg."""

import pathlib

import testscenarios
from packaging import requirements, utils

from tests import base, declared

_ROOT = pathlib.Path(__file__).parents[2]


def _requirements():
    """Return the requirements of setup.cfg: list of tuples of the section or extra and a line."""
    return [(name, line) for name, lines in declared.sections().items() for line in lines
            if not line.startswith("placement-rpc[")]


def _pinned():
    """Return the versions of constraints.txt: dict of canonical name to str."""
    lines = (_ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines]
    return {utils.canonicalize_name(name): version for name, version in pairs}


class RequirementTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(f"{name}: {line}", {"line": line}) for name, line in _requirements()]

    def test_a_version_that_satisfies_it_is_pinned(self):
        requirement = requirements.Requirement(self.line)
        version = _pinned().get(utils.canonicalize_name(requirement.name))
        self.assertIsNotNone(version, "run: make upgrade-constraints")
        self.assertTrue(requirement.specifier.contains(version), version)


class ConstraintsTest(base.TestCase):

    def test_there_are_versions_only(self):
        """The file has no URLs, and no paths of the machine that wrote it."""
        for line in (_ROOT / "constraints.txt").read_text().splitlines():
            self.assertRegex(line, r"\A[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+\Z")

    def test_the_project_itself_is_not_pinned(self):
        self.assertNotIn("placement-rpc", _pinned())
