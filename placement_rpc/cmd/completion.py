# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc completion``: scripts that complete the programs' command lines in a shell."""

import functools
import shlex

from placement_rpc.cmd import parser_tree

_BASH = """\
{function}() {{
    local at="" word current=${{COMP_WORDS[COMP_CWORD]}} candidates=""
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$at $word" in {steps}) at="$at $word";; esac
    done
    case "$at ${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
    *) case "$at" in
{words}
    esac;;
    esac
    COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}}
complete -o default -F {function} {program}
"""
_ZSH = """\
{function}() {{
    local at="" word
    local -a candidates
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$at $word" in ({steps}) at="$at $word";; esac
    done
    case "$at ${{words[CURRENT-1]}}" in
{values}
    (*) case "$at" in
{words}
    esac;;
    esac
    (( $#candidates )) && _describe {program} candidates || _files
}}
compdef {function} {program}
"""


def script(shell):
    """Return the script that completes all programs, a str.

    :param shell: ``bash`` or ``zsh``
    """
    make = {"bash": functools.partial(_of_program, _BASH, _bash_words),
            "zsh": functools.partial(_of_program, _ZSH, _zsh_words)}[shell]
    return "".join(make(name, parser()) for name, parser in parser_tree.PROGRAMS.items())


def _of_program(template, words_of, program, parser):
    commands = list(parser_tree.commands(parser))
    steps = [_place(command.names) for command in commands[1:]]
    values, words = [], []
    for command in commands:
        found, place = parser_tree.arguments(command.parser), _place(command.names)
        values += [_case([_place((*command.names, name)) for name in each.names],
                         words_of([(choice, "") for choice in each.choices]))
                   for each in found if each.names and each.value]
        below = [(each.names[-1], each.help) for each in commands
                 if each.names and each.names[:-1] == command.names]
        words.append(_case([place], words_of([
            *below, *((choice, "") for each in found if not each.names for choice in each.choices),
            *((name, each.help) for each in found for name in each.names
              if name.startswith("--"))])))
    return template.format(
        program=program, function=f"_{program.replace('-', '_')}",
        # A program without commands takes no step.
        steps="|".join(map(shlex.quote, steps)) or "''",
        values="\n".join(values), words="\n".join(words))


def _place(names):
    """Return where a command line has got to, as the scripts know it."""
    return "".join(f" {name}" for name in names)


def _case(patterns, action):
    return f"    ({'|'.join(shlex.quote(each) for each in patterns)}) {action};;"


def _bash_words(words):
    return f"candidates={shlex.quote(' '.join(word for word, _help in words))}"


def _zsh_words(words):
    return "candidates=(" + " ".join(
        shlex.quote(word + (f":{' '.join(text.split())}" if text else ""))
        for word, text in words) + ")"
