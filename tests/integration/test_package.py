# SPDX-License-Identifier: Apache-2.0
"""The packages that ``python -m build`` makes, and what works with only the wheel installed."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import fixtures
from packaging import utils

import placement_rpc
from tests import base, declared, environments

_ROOT = pathlib.Path(__file__).parents[2]
# For git and the project's own checks only.
_UNPUBLISHED = (".ci", ".gitignore", "MANIFEST.in")
_PROGRAMS = ("placement-rpc", "placement-rpc-conductor", "placement-rpc-manage",
             "placement-rpc-status")
# Arguments of those that a client's installation cannot run, and the exit status.
_NEED_SERVICE = {"placement-rpc-conductor": ((), 1),
                 "placement-rpc-manage": (("db", "version"), 1),
                 "placement-rpc-status": (("upgrade", "check"), 255)}

# Prints the programs of an environment, each with the distribution that installed it.
_OWNERS = """
from importlib import metadata
for each in metadata.distributions():
    for path in each.files or ():
        if path.parent.name == "bin":
            print(path.name, each.name)
"""
# What every new environment has.
_OF_PYTHON = ("python", "pip", "activate", "Activate.ps1", "__pycache__")


class PackageTest(base.TestCase):
    """Build both packages, and install the wheel alone into an environment of its own."""

    time_limit = 600

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def run_program(self, *command, code=0, **environment):
        """Run a program far from this tree; return what it prints."""
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
            cwd=self.directory, env={
                **{name: value for name, value in os.environ.items()
                   if not name.startswith("PYTHON")}, **environment})
        self.assertEqual(code, done.returncode, f"{command}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def test_build_and_install(self):
        tree = self.copy_tree()
        sdist, wheel = self.build(tree)
        self.check_content(tree, sdist, wheel)
        unpacked = self.directory / "unpacked"
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        examples, = unpacked.glob("*/examples")
        python = self.install(wheel)
        self.check_client(python)
        self.pip(python, f"{wheel}[service]")
        self.check_service(python, examples)

    def test_environment_of_users(self):
        """Each program that ``make run`` installs is ours, or of something that we need."""
        if not base.FULL:
            self.skipTest("it installs an environment: make test FULL=1")
        tree = self.copy_tree()
        self.run_program("make", "-C", tree, f"PYTHON={sys.executable}", ".venv/.installed",
                         MAKEFLAGS="")
        programs = tree / ".venv" / "bin"
        owners = dict(line.split() for line in self.run_program(
            programs / "python", "-c", _OWNERS).splitlines())
        needed = declared.installed_with(declared.lines("install_requires")
                                         + declared.lines("standalone")) | {"placement-rpc"}
        found = {path.name: utils.canonicalize_name(owners.get(path.name, "nobody"))
                 for path in programs.iterdir() if not path.name.startswith(_OF_PYTHON)}
        self.assertLessEqual({*_PROGRAMS, "openstack"}, set(found))
        self.assertEqual({}, {name: owner for name, owner in found.items()
                              if owner not in needed})

    def copy_tree(self):
        """Copy the files that belong to the project: building writes into its directory."""
        names = subprocess.run(
            ["git", "-C", _ROOT, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            check=True, capture_output=True, text=True).stdout.split("\0")[:-1]
        tree = self.directory / "tree"
        for name in names:
            if (_ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(_ROOT / name, tree / name)
        return tree

    def build(self, tree):
        """Build the sdist, and of that the wheel; return their paths."""
        self.run_program(*environments.program("build").module("build", str(tree)))
        sdist, = (tree / "dist").glob("*.tar.gz")
        wheel, = (tree / "dist").glob("*.whl")
        self.assertEqual(
            f"placement_rpc-{placement_rpc.__version__}-py3-none-any.whl", wheel.name)
        return sdist, wheel

    def check_content(self, tree, sdist, wheel):
        ours = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
        ours = {name for name in ours if not name.startswith(("dist/", *_UNPUBLISHED))
                and ".egg-info/" not in name}
        with tarfile.open(sdist) as archive:
            there = {member.name.partition("/")[2] for member in archive if member.isfile()}
        self.assertEqual(set(), ours - there)
        self.assertEqual(set(), {name for name in there - ours if ".egg-info/" not in name} - {
            "PKG-INFO", "MANIFEST.in"})
        with zipfile.ZipFile(wheel) as archive:
            installed = {name for name in archive.namelist() if ".dist-info/" not in name}
        manuals = {f"placement_rpc-{placement_rpc.__version__}.data/data/share/man/man1/{name}.1"
                   for name in _PROGRAMS}
        self.assertEqual({name for name in ours if name.startswith("placement_rpc/")} | manuals,
                         installed)

    def install(self, wheel):
        """Install the wheel alone, as for a client; return the path of the interpreter."""
        self.run_program(sys.executable, "-m", "venv", str(self.directory / "venv"))
        python = str(self.directory / "venv" / "bin" / "python")
        self.pip(python, str(wheel))
        return python

    def pip(self, python, requirement):
        self.run_program(
            python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            # Of most modules nothing is needed.
            "--no-compile", "--constraint", str(_ROOT / "constraints.txt"), requirement)

    def check_client(self, python):
        """It can call, and says what the other programs lack."""
        self.run_program(python, "-c", "from placement_rpc.api import PlacementAPI")
        programs = pathlib.Path(python).parent
        self.assertIn("listen", self.run_program(programs / _PROGRAMS[0], "--help"))
        for name, (arguments, code) in _NEED_SERVICE.items():
            # Help needs nothing; the rest does.
            self.assertIn("--config-file", self.run_program(programs / name, "--help"))
            self.assertIn("placement-rpc[service]",
                          self.run_program(programs / name, *arguments, code=code))

    def check_service(self, python, examples):
        self.run_program(python, "-m", "pip", "check")
        programs = pathlib.Path(python).parent
        for name in _PROGRAMS:
            self.assertIn("usage", self.run_program(programs / name, "--help"))
        conf = self.directory / "placement-rpc.conf"
        conf.write_text(f"[database]\nconnection = sqlite:///{self.directory}/store.sqlite\n"
                        "[api]\nauth_strategy = noauth2\n")
        self.run_program(programs / "placement-rpc-manage", "--config-file", conf, "db", "sync")
        self.run_program(
            python, "-c", "from placement_rpc.http import wsgi\nassert callable(wsgi.application)",
            PLACEMENT_RPC_CONF=str(conf))
        said = self.run_program(
            python, str(examples / "demo.py"), "--consumers", "200", "--clients", "4")
        for words in ("There are 120 compute nodes",
                      "The usages are equal to the allocations of the clients"):
            self.assertIn(words, said)
        where = self.run_program(python, "-c", "import placement_rpc as p; print(p.__file__)")
        self.assertIn(str(self.directory), where)
