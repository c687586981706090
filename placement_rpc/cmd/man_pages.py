# SPDX-License-Identifier: Apache-2.0
"""Manual pages of the programs, in the form of man(7).

::

    python -m placement_rpc.cmd.man_pages DIRECTORY
"""

import pathlib
import re
import sys

from placement_rpc.cmd import parser_tree

_SEE_ALSO = ("The guides of operators and developers are in the project's documentation; "
             "etc/placement-rpc/placement-rpc.conf.sample has every option of the configuration.")


def pages():
    """Return a dict of file name to text."""
    return {f"{program}.1": _page(program, parser())
            for program, parser in parser_tree.PROGRAMS.items()}


def _page(program, parser):
    commands = list(parser_tree.commands(parser))
    others = [f"{each}(1)" for each in parser_tree.PROGRAMS if each != program]
    summary = commands[0].help.split("\n")[0].rstrip(".")
    lines = [f'.TH {_text(program.upper())} 1 "" "placement_rpc" "User Commands"',
             ".SH NAME", f"{_text(program)} \\- {_text(summary[:1].lower() + summary[1:])}",
             ".SH SYNOPSIS", f".B {_text(program)}", _text(_synopsis(program, parser)),
             ".SH DESCRIPTION", *_paragraphs(parser.description),
             ".SH OPTIONS", *_arguments(parser)]
    # A group is not described if it has commands: those say what it is.
    leaves = [command for command in commands[1:] if not any(
        each.names[:-1] == command.names for each in commands)]
    if leaves:
        lines.append(".SH COMMANDS")
    for command in leaves:
        lines += [f".SS {_text(' '.join(command.names))}",
                  *_paragraphs(command.parser.description), *_arguments(command.parser)]
    lines += [".SH SEE ALSO", f"{_text(', '.join(others))}", ".PP", _text(_SEE_ALSO)]
    return "\n".join(lines) + "\n"


def _synopsis(program, parser):
    """Return the arguments of a program, in one line."""
    return " ".join(parser.format_usage().removeprefix(f"usage: {program}").split())


def _paragraphs(text):
    """Return lines of a text whose paragraphs are separated by empty lines."""
    lines = []
    for number, paragraph in enumerate(text.strip("\n").split("\n\n")):
        # What is indented is a list, whose lines are kept.
        is_list = paragraph.startswith(" ")
        lines += [".PP"] * bool(number)
        lines += [".nf", *map(_text, paragraph.split("\n")), ".fi"] if is_list else (
            [_text(" ".join(paragraph.split()))])
    return lines


def _arguments(parser):
    lines = []
    for each in parser_tree.arguments(parser):
        if each.names == ("-h", "--help"):
            continue
        names = [f"\\fB{_text(name)}\\fR" for name in each.names] or [""]
        value = f"\\fI{_text(each.value)}\\fR" if each.value else ""
        lines += [".TP", ", ".join(f"{name} {value}".strip() for name in names),
                  _text(" ".join(each.help.split()))]
    return lines


def _text(text):
    """Return a text in which nothing is a request of man(7)."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text)


if __name__ == "__main__":
    for name, page in pages().items():
        pathlib.Path(sys.argv[1], name).write_text(page)
