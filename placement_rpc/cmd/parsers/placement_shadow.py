# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-manage placement shadow``."""

import argparse
import re

from placement_rpc.cmd import arguments

_DESCRIPTION = """\
Ask two services the read requests of an access log, and compare their answers and how long they
take. Only GET is ever sent. Lists are compared as sets. Of candidates that a limit cut off, the
number counts, what is said of providers that both services name, and whether some candidates of
each are candidates of the other.

Formats of logs: common and combined (Apache, nginx, gunicorn, HAProxy), uWSGI's, Placement's
request log, JSON lines, and lines like "GET /usages?project_id=p 1.38". Other lines are counted
and left out. Only Placement's request log says the microversion by itself; Apache and nginx do if
their format has the header OpenStack-API-Version.

Verdicts: same; different (though both stores agree about the providers in question); data (the
stores differ, as they do when the cloud went on after the last import); moving (the old service's
answer changed meanwhile); forbidden (403 from both, so nothing was compared); unanswered (no
answer, or 503, from one of them, so nothing was compared).

Exits with 0 if the services said the same, with 1 if there are answers of the verdicts different,
data or forbidden, and with 2 if there are only unanswered ones. Exits with 2 also if the
comparison was not made to its end: a service cannot be reached or refuses the credentials, the log
has no requests, or the arguments are wrong.
"""
_VERSION = re.compile(r"1\.\d{1,4}|latest")
_MAX_THREADS = 64


def add_command(commands):
    """Add ``placement shadow``.

    :param commands: the sub-parsers of the group
    """
    text = "ask two services the read requests of an access log, and compare the answers"
    command = commands.add_parser(
        "shadow", help=text, description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--url", required=True, metavar="URL",
                         help="the old service, for example https://old.example.org/placement")
    command.add_argument("--against", metavar="URL",
                         help="the new service (default: that of the state directory, or "
                              "[api] bind_host and bind_port of the configuration)")
    command.add_argument("--requests", action="append", required=True, metavar="FILE",
                         help="access log, which may be compressed with gzip; - is standard "
                              "input; may be given several times")
    command.add_argument("--microversion", action="append", type=_microversion, metavar="1.N",
                         help="microversion of requests whose lines do not say it; if it is given "
                              "several times, they are asked at each (default: the newest that "
                              "both services have)")
    command.add_argument("--os-cloud", metavar="NAME",
                         help="cloud of clouds.yaml whose credentials are used (default: the "
                              "variables OS_*; OS_AUTH_TYPE=none for services without keystone)")
    command.add_argument("--against-os-cloud", metavar="NAME",
                         help="the same for the new service, if it is another cloud's")
    _add_limits(command)
    command.add_argument("--dry-run", action="store_true",
                         help="read the log and show what would be asked; send nothing")
    arguments.add_format(command, arguments.DOCUMENT)
    command.set_defaults(run="manage_placement_shadow.run", needs_database=False,
                         failure=2)


def _add_limits(command):
    for name, type_, default, text in (
            ("sample", arguments.positive, 500,
             "different requests of each kind, such as GET /usages, that are asked at most; the "
             "same ones in each run (default: 500)"),
            ("rate", _rate, 20.0,
             "requests per second to each service at most; 0 is no limit (default: 20)"),
            ("concurrency", _threads, 1,
             "requests at a time; with more than one they wait for each other in the services, "
             "and the latencies show it (default: 1)"),
            ("timeout", _rate, 60.0, "seconds for which an answer is awaited (default: 60)"),
            ("show", arguments.positive, 20, "differences that the table shows (default: 20)")):
        command.add_argument(f"--{name}", type=type_, default=default, help=text,
                             metavar="SECONDS" if name == "timeout" else "N")


def _microversion(text):
    if not _VERSION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text} is not a microversion, such as 1.36")
    return text


def _threads(text):
    value = arguments.positive(text)
    if value > _MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text} is more than {_MAX_THREADS}")
    return value


def _rate(text):
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 on")
    return value
