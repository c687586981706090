# SPDX-License-Identifier: Apache-2.0
"""Virtual environments beside the one of the tests.

* Earlier releases of this project, whose programs run alongside those of this tree:
  ``upgrade/releases/`` has the wheel of each, and the versions of its dependencies as they were
  when it was made.
* Programs that need other versions of libraries than this tree: those of OpenStack, Patroni, and
  what builds packages. ``constraints/`` has the versions of each, which
  ``tools/upgrade-constraints`` renews.

An environment is made on first use, and kept in ``.venv-others/`` until a file that it is made
from changes. Before the tests start ``make test`` makes those that are missing, so that no test's
time limit has to cover it::

    python -m tests.environments
"""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import venv

_TESTS = pathlib.Path(__file__).parent
_RELEASES = _TESTS / "upgrade" / "releases"
_CONSTRAINTS = _TESTS / "constraints"
_ENVIRONMENTS = _TESTS.parent / ".venv-others"
_COMPLETE = ".complete"

#: Version of each package that runs alongside this tree, to the name of its release.
RELEASES = {"0.2.0": "2026.2"}

#: Name of each other program's environment, to what is installed in it. nova's code runs with
#: SQLAlchemy below 2.1 only, which its metadata does not say. The Patroni of a distribution may be
#: one before 3.0.3, whose frozen primary takes its lease back from the new one when it goes on.
PROGRAMS = {
    "build": ("build",),
    "patroni": ("patroni[etcd3]", "psycopg[binary]"),
    "keystone": ("keystone", "gunicorn"),
    "nova": ("nova", "neutron-lib", "SQLAlchemy<2.1"),
}


@dataclasses.dataclass(frozen=True)
class Installation:
    """A Python installation that has placement_rpc.

    :param name: the name that tests call it by
    :param directory: where its ``bin`` is
    :param options: options of the interpreter
    """

    name: str
    directory: pathlib.Path
    options: tuple = ("-W", "ignore")

    def program(self, name, *arguments):
        """Return the command line of a console program of the package: list of str."""
        return self.script(self.directory / "bin" / name, *arguments)

    def script(self, path, *arguments):
        """Return the command line of a Python file: list of str."""
        return [*self.python, str(path), *arguments]

    def module(self, name, *arguments):
        """Return the command line of a module of a library: list of str."""
        return [*self.python, "-m", name, *arguments]

    @property
    def python(self):
        return [str(self.directory / "bin" / "python"), *self.options]


THIS_TREE = Installation("this tree", pathlib.Path(sys.prefix))


@functools.cache
def release(version: str) -> Installation:
    """Return the installation of an earlier release; make it if it is missing.

    :param version: a key of :data:`RELEASES`
    """
    wheel = _RELEASES / f"placement_rpc-{version}-py3-none-any.whl"
    return _environment(
        version, RELEASES[version], [f"{wheel}[postgresql,mysql]", "gunicorn"],
        constraints=_RELEASES / f"constraints-{version}.txt", content=wheel.read_bytes())


@functools.cache
def program(name: str) -> Installation:
    """Return the installation of another program; make it if it is missing.

    :param name: a key of :data:`PROGRAMS`
    """
    return _environment(name, name, PROGRAMS[name], constraints=_CONSTRAINTS / f"{name}.txt")


def _environment(name, title, requirements, *, constraints, content=b""):
    """Return an installation, whose interpreter is isolated.

    Neither ``PYTHONPATH`` nor the working directory can make it import the packages of this tree.

    :param title: what tests call it
    :param content: of files that the requirements name
    """
    digest = hashlib.sha256(
        f"{sys.version_info[:2]} {sys.base_prefix} {' '.join(map(os.path.basename, requirements))}"
        .encode())
    digest.update(content)
    digest.update(constraints.read_bytes())
    directory = _ENVIRONMENTS / f"{name}-{digest.hexdigest()[:16]}"
    with _locked(directory):
        if not (directory / _COMPLETE).exists():
            _make(directory, requirements, constraints)
    return Installation(title, directory, ("-I", "-W", "ignore"))


@contextlib.contextmanager
def _locked(directory):
    """Let one process at a time look for, or make, an environment."""
    directory.parent.mkdir(exist_ok=True)
    with directory.with_name(f"{directory.name}.lock").open("w") as lock:
        # Released by the kernel, also when this process is killed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(directory, requirements, constraints):
    """Make an environment; what an interrupted attempt left is removed first.

    :raises RuntimeError: with the output of pip
    """
    shutil.rmtree(directory, ignore_errors=True)
    # A copy of the interpreter would be "busy" when another thread starts a program meanwhile.
    venv.EnvBuilder(with_pip=True, symlinks=True).create(directory)
    done = subprocess.run(
        [directory / "bin" / "python", "-I", "-m", "pip", "install", "--quiet",
         "--disable-pip-version-check", "--constraint", constraints, *requirements],
        check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        cwd=directory, env={name: value for name, value in os.environ.items()
                            if not name.startswith("PYTHON")})
    if done.returncode:
        raise RuntimeError(f"{requirements[0]} cannot be installed:\n{done.stdout}{done.stderr}")
    (directory / _COMPLETE).touch()


def main(args):
    if args == ["requirements"]:
        # For tools/upgrade-constraints: a line for each environment, its name first.
        for name, requirements in PROGRAMS.items():
            print(name, *requirements)
        return
    # pip needs one processor. The largest environment is the last of PROGRAMS.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        made = [*(pool.submit(program, name) for name in reversed(PROGRAMS)),
                *(pool.submit(release, version) for version in RELEASES)]
    for environment in made:
        environment.result()


if __name__ == "__main__":
    main(sys.argv[1:])
