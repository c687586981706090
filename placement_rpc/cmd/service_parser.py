# SPDX-License-Identifier: Apache-2.0
"""The arguments of ``placement-rpc-conductor`` and ``placement-rpc-status``."""

import argparse

import placement_rpc
from placement_rpc.cmd import config_sources


def conductor():
    """Return the parser of ``placement-rpc-conductor``."""
    whole = _parser("placement-rpc-conductor",
                    "Run the worker processes that answer calls, until SIGTERM.")
    config_sources.add_state_dir(whole, default="none")
    config_sources.add_logging(whole)
    return whole


def status():
    """Return the parser of ``placement-rpc-status``."""
    whole = _parser("placement-rpc-status",
                    "Check whether the next step of an upgrade can be taken.")
    config_sources.add_state_dir(whole)
    config_sources.add_logging(whole)
    groups = whole.add_subparsers(dest="group", required=True, metavar="GROUP")
    text = "checks of an upgrade"
    group = groups.add_parser("upgrade", help=text, description=f"{text.capitalize()}.")
    commands = group.add_subparsers(dest="command", required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check", help="check whether the next step of an upgrade can be taken",
        description="Check whether the next step of an upgrade can be taken. Exits with 0 if it "
                    "can, 1 if there are warnings, 2 if a check failed, and 255 for an error.")
    check.add_argument("--json", action="store_true",
                       help="print the results as JSON (default: a table)")
    return whole


def _parser(program, description):
    whole = argparse.ArgumentParser(prog=program, description=description)
    whole.add_argument("--version", action="version", version=placement_rpc.__version__)
    config_sources.add_arguments(whole)
    return whole
