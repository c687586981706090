# SPDX-License-Identifier: Apache-2.0
"""Let every part of the service fail under load: ``make soak CLUSTER=galera MINUTES=10``.

The exit status is 1 if an answer to a client, the store or the stream of events is wrong.
"""

import argparse
import json
import logging
import random
import signal
import sys
import time

from tests.soak import report, run


def _options():
    parser = argparse.ArgumentParser(prog="python -m tests.soak",
                                     description=__doc__.partition("\n")[0])
    parser.add_argument("--cluster", choices=list(run.FORMS), default="none",
                        help="'none' and 'mariadb' have one broker and one database, PostgreSQL "
                             "and MariaDB; 'galera' and 'postgresql' have three of each")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, help="of the clients, the order of the faults and "
                        "their times; another one each time by default")
    parser.add_argument("--faults", help="names, separated by commas; all by default")
    parser.add_argument("--every", type=float, default=20, help="seconds between two faults")
    parser.add_argument("--json", help="write the result to this file, too")
    parser.add_argument("--histories", help="directory in which the histories of the clients are "
                                            "kept; they are removed by default")
    parser.add_argument("--sum", nargs="+", metavar="FILE",
                        help="run nothing; add up the results in files of --json")
    parser.add_argument("--format", choices=["text", "json", "rst"], default="text")
    return parser.parse_args()


def _run(options):
    """Return the result of one run."""
    seed = random.randrange(2 ** 32) if options.seed is None else options.seed
    print(f"--cluster {options.cluster} --seed {seed}", flush=True)
    began = time.monotonic()

    def tell(text):
        print(f"{time.monotonic() - began:8.1f} s  {text}", flush=True)

    with run.Soak(options.cluster, seed, tell, options.histories) as soak:
        tell("started")
        soak.run(60 * options.minutes, options.every,
                 options.faults and options.faults.split(","))
        result = soak.figures()
    result["minutes"] = round((time.monotonic() - began) / 60, 1)
    return result


def main():
    options = _options()
    # The faults are reported below; the errors that they cause are expected.
    logging.disable()
    # As Ctrl-C: what was done is checked.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        results = (report.add(report.load(options.sum)) if options.sum else [_run(options)])
    except KeyboardInterrupt:
        # Before or after the load: there is nothing to check.
        return 130
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)
    print({"text": lambda: "\n".join(map(report.text, results)),
           "json": lambda: json.dumps(results, indent=1),
           "rst": lambda: report.rst(results)}[options.format]())
    return int(any(each["wrong"] for each in results))


if __name__ == "__main__":
    sys.exit(main())
