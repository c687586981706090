# SPDX-License-Identifier: Apache-2.0
"""The programs' commands and options, read from their parsers.

Completion and the manual pages are made from what ``--help`` is made from, so none of them can
differ from the others.
"""

import argparse
from typing import NamedTuple

from placement_rpc.cmd import client_parser, manage_parser, service_parser

#: Name of each program, to the function that returns its parser.
PROGRAMS = {
    "placement-rpc": client_parser.parser,
    "placement-rpc-conductor": service_parser.conductor,
    "placement-rpc-manage": manage_parser.parser,
    "placement-rpc-status": service_parser.status,
}


class Command(NamedTuple):
    """A program, a group of commands, or a command.

    :param names: what selects it on the command line, without the program
    :param help: in one line
    """

    names: tuple[str, ...]
    help: str
    parser: argparse.ArgumentParser


class Argument(NamedTuple):
    """An option, or an argument that is given by its place.

    :param names: of an option; none of the other
    :param value: the name of its value; empty for a flag
    :param choices: the values that it can have; none if it can have any
    """

    names: tuple[str, ...]
    value: str
    help: str
    choices: tuple[str, ...]


def commands(parser, names=(), text=""):
    """Yield a parser and all parsers below it, as :class:`Command`."""
    yield Command(names, text or parser.description, parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for name, below in action.choices.items():
                yield from commands(below, (*names, name), helps[name])


def arguments(parser):
    """Return what ``--help`` of one parser lists, as a list of :class:`Argument`."""
    formatter = parser._get_formatter()
    return [Argument(tuple(action.option_strings), _value(action),
                     formatter._expand_help(action), tuple(map(str, action.choices or ())))
            for action in parser._actions
            if action.help != argparse.SUPPRESS
            and not isinstance(action, argparse._SubParsersAction)]


def _value(action):
    if action.nargs == 0:
        return ""
    return action.metavar or (
        "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper())
