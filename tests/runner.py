# SPDX-License-Identifier: Apache-2.0
"""Run the tests with stestr, on shared servers: ``python -m tests.runner [PATTERN]``.

stestr gives the longest classes to its workers first, by the times of earlier runs. A repository
without such times takes them from ``tests/timings.txt``, which ``--save-timings`` writes.

A failed test of servers is run once more, alone: such tests have time limits, which a machine
that stands still for seconds exceeds. Both results are shown. Tests of what must never fail, that
nothing is lost and nothing done twice, are run again only if they exceeded the time limit of the
whole test, before they could judge; nothing is run again if many tests failed.
"""

import argparse
import collections
import datetime
import os
import pathlib
import re
import subprocess
import sys

import testtools
from stestr.repository import abstract, util

_TIMINGS = pathlib.Path(__file__).with_name("timings.txt")
_STESTR = (sys.executable, "-W", "ignore", "-m", "tests.servers", sys.executable, "-m", "stestr")
# Shorter tests change little in the distribution.
_SHORTEST_TIMING = 1.0
_MOST_RETRIED = 3
_RETRIED = re.compile(r"tests\.(integration|upgrade|conformance|ui)\.")
_MUST_HOLD = re.compile(
    r"\.(test_exactly_once|test_concurrency|test_soak|test_cluster_rolling|test_standby_failures|"
    r"test_galera_failures|test_galera_writers|test_patroni|test_restore)\.|KilledTest")

Result = collections.namedtuple("Result", "status seconds is_late")


def _repository():
    try:
        return util.get_repo_open()
    except abstract.RepositoryNotFound:
        repository = util.get_repo_initialise()
        _add_timings(repository)
        return repository


def _add_timings(repository):
    """Record the committed times as those of a run and remove the run: stestr keeps the times."""
    inserter = repository.get_inserter()
    inserter.startTestRun()
    began = datetime.datetime.now(datetime.UTC)
    for line in _TIMINGS.read_text().splitlines():
        seconds, test = line.split(maxsplit=1)
        inserter.status(test_id=test, test_status="inprogress", timestamp=began)
        inserter.status(test_id=test, test_status="success",
                        timestamp=began + datetime.timedelta(seconds=float(seconds)))
    inserter.stopTestRun()
    repository.remove_run_id(str(inserter.get_id()))


def _run(repository, *arguments):
    """Run stestr.

    :returns: tuple of its exit status and a dict of test id to :class:`Result`
    """
    runs = repository.count()
    # stestr's workers run this interpreter, which "make test PYTHON=..." sets to another one.
    status = subprocess.run([*_STESTR, "run", *arguments], check=False,
                            env={**os.environ, "PYTHON": sys.executable}).returncode
    found = {}
    if repository.count() > runs:
        results = testtools.StreamToDict(lambda test: found.update({test["id"]: _result(test)}))
        results.startTestRun()
        repository.get_latest_run().get_test().run(results)
        results.stopTestRun()
    return status, {test: result for test, result in found.items() if result is not None}


def _result(test):
    began, ended = test["timestamps"]
    if test["status"] == "exists" or began is None or ended is None:
        return None
    is_late = any("TimeoutException" in detail.as_text()
                  for name, detail in test["details"].items() if name.startswith("traceback"))
    return Result(test["status"], (ended - began).total_seconds(), is_late)


def _failed(results):
    return sorted(test for test, result in results.items()
                  if result.status not in ("success", "skip", "xfail"))


def _without_scenario(test):
    """Return the id by which stestr lists a test: scenarios are applied when the test runs."""
    return test.partition("(")[0]


def _may_retry(failed, results):
    return 0 < len(failed) <= _MOST_RETRIED and all(
        _RETRIED.match(test) and (results[test].is_late or not _MUST_HOLD.search(test))
        for test in failed)


def _report(results, retried):
    print("\nThe ten slowest tests:")
    for test, result in sorted(results.items(), key=lambda item: -item[1].seconds)[:10]:
        print(f"{result.seconds:8.1f} s  {test}")
    for test in retried:
        print(f"Failed alongside the others and {results[test].status} alone: {test}")
    failed = _failed(results)
    for test in failed:
        print(f"FAILED: {test}")
    skipped = sum(result.status == "skip" for result in results.values())
    passed = len(results) - len(failed) - skipped
    print(f"Of {len(results)} tests {passed} passed, {len(failed)} failed and {skipped} were "
          f"skipped; {len(retried)} were run a second time.")
    print(f"{passed} passed, {len(failed)} failed")


def _save_timings(results):
    times = collections.Counter()
    for test, result in results.items():
        times[_without_scenario(test)] += result.seconds
    _TIMINGS.write_text("".join(
        f"{seconds:.1f} {test}\n" for test, seconds in sorted(times.items())
        if seconds >= _SHORTEST_TIMING))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--save-timings", action="store_true",
                        help="write the times of this run to tests/timings.txt")
    parser.add_argument("pattern", nargs="?", help="regular expression of the tests to run")
    options = parser.parse_args()
    repository = _repository()
    status, results = _run(repository, *filter(None, [options.pattern]))
    failed = _failed(results)
    if status and _may_retry(failed, results):
        print("\nFailed alongside the others, and run once more, alone:", *failed, sep="\n  ",
              flush=True)
        names = "|".join(sorted({re.escape(_without_scenario(test)) for test in failed}))
        status, again = _run(repository, "--serial", rf"^({names})(\(|$)")
        results.update(again)
    else:
        failed = []
    _report(results, failed)
    if options.save_timings:
        _save_timings(results)
    return status


if __name__ == "__main__":
    sys.exit(main())
