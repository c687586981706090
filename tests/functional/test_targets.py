# SPDX-License-Identifier: Apache-2.0
"""The environments of the Makefile: users get no programs that only tests need."""

import os
import pathlib
import subprocess
from importlib import metadata

from packaging import requirements, utils

from tests import base, declared

_ROOT = pathlib.Path(__file__).parents[2]
_USERS = ".venv"
_TESTS = ".venv-test"


def _recipes(target):
    """Return the commands that ``make`` would run for a target on a fresh machine: str."""
    # What 'make test' and the runner set for their children would change them.
    environment = {
        name: value for name, value in os.environ.items() if name not in (
            "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHON", "VENV", "TEST_VENV")}
    return subprocess.run(
        ["make", "--dry-run", "--always-make", "--no-print-directory", target], check=True,
        capture_output=True, text=True, cwd=_ROOT, env=environment).stdout


def _programs(name):
    """Return the names of the programs of an installed distribution."""
    return [path.name for path in metadata.files(name) or () if path.parent.name == "bin"]


class TargetTest(base.TestCase):

    def test_users_have_an_environment_of_their_own(self):
        for target in ("run", "demo"):
            recipes = _recipes(target)
            self.assertIn(f'"{_USERS}" standalone\n', recipes)
            self.assertIn(f"{_USERS}/bin/", recipes)
            self.assertNotIn(_TESTS, recipes)

    def test_developers_need_no_other_than_that_of_the_tests(self):
        for target in ("test", "lint", "sample", "docs", "bench", "soak", "test-environments"):
            recipes = _recipes(target)
            self.assertIn(f'"{_TESTS}" test\n', recipes)
            self.assertIn(f"{_TESTS}/bin", recipes)
            self.assertNotIn(f"{_USERS}/", recipes)
            self.assertNotIn(f'"{_USERS}"', recipes)


class ProgramTest(base.TestCase):

    def test_users_get_no_program_that_only_tests_need(self):
        users = declared.lines("standalone")
        installed = declared.installed_with(users)
        ours = {utils.canonicalize_name(requirements.Requirement(line).name) for line in users}
        only_tests = {utils.canonicalize_name(requirements.Requirement(line).name)
                      for line in declared.lines("test")} - ours
        with_programs = {name: _programs(name) for name in only_tests if _programs(name)}
        # The check sees what it is about.
        self.assertIn("placement-manage", with_programs["openstack-placement"])
        self.assertLessEqual(
            {"gunicorn", "pyuwsgi", "schemathesis", "mypy", "ruff", "stestr"}, set(with_programs))
        self.assertEqual({}, {name: programs for name, programs in with_programs.items()
                              if name in installed})
