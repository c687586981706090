# SPDX-License-Identifier: Apache-2.0
"""Virtual environments of earlier releases, whose programs run alongside those of this tree.

``releases/`` has the wheel of each release, and the versions of its dependencies as they were when
it was made. An environment is made on first use and kept in ``.venv-releases/``. Before the tests
start ``make test`` makes those that are missing, so that no test's time limit has to cover it::

    python -m tests.upgrade.release_environment
"""

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

_ROOT = pathlib.Path(__file__).parents[2]
_RELEASES = pathlib.Path(__file__).with_name("releases")
_ENVIRONMENTS = _ROOT / ".venv-releases"
_COMPLETE = ".complete"

#: Version of each package that runs alongside this tree, to the name of its release.
RELEASES = {"0.2.0": "2026.2"}


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
def release(version):
    """Return the :class:`Installation` of an earlier release; make it if it is missing.

    Its interpreter is isolated: neither ``PYTHONPATH`` nor the working directory can make it
    import the packages of this tree.

    :param version: str, a key of :data:`RELEASES`
    """
    wheel = _RELEASES / f"placement_rpc-{version}-py3-none-any.whl"
    constraints = _RELEASES / f"constraints-{version}.txt"
    digest = hashlib.sha256(f"{sys.version_info[:2]} {sys.base_prefix} ".encode())
    for path in (wheel, constraints):
        digest.update(path.read_bytes())
    directory = _ENVIRONMENTS / f"{version}-{digest.hexdigest()[:16]}"
    with _locked(directory):
        if not (directory / _COMPLETE).exists():
            _make(directory, wheel, constraints)
    return Installation(RELEASES[version], directory, ("-I", "-W", "ignore"))


@contextlib.contextmanager
def _locked(directory):
    """Let one process at a time look for, or make, an environment."""
    directory.parent.mkdir(exist_ok=True)
    with directory.with_name(f"{directory.name}.lock").open("w") as lock:
        # Released by the kernel, also when this process is killed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(directory, wheel, constraints):
    """Make an environment; what an interrupted attempt left is removed first.

    :raises RuntimeError: with the output of pip
    """
    shutil.rmtree(directory, ignore_errors=True)
    venv.EnvBuilder(with_pip=True).create(directory)
    done = subprocess.run(
        [directory / "bin" / "python", "-I", "-m", "pip", "install", "--quiet",
         "--disable-pip-version-check", "--constraint", constraints,
         f"{wheel}[postgresql,mysql]", "gunicorn"],
        check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        cwd=directory, env={name: value for name, value in os.environ.items()
                            if not name.startswith("PYTHON")})
    if done.returncode:
        raise RuntimeError(f"{wheel.name} cannot be installed:\n{done.stdout}{done.stderr}")
    (directory / _COMPLETE).touch()


def main():
    for version in RELEASES:
        release(version)


if __name__ == "__main__":
    main()
