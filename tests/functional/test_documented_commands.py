# SPDX-License-Identifier: Apache-2.0
"""Commands of the documentation, on every page, as their programs understand them.

The commands of the README, the tutorial and the pages for each reader are run by other tests.
Others need a cloud, root's rights or a broken broker: here their parsers read them.
"""

import argparse
import contextlib
import io
import pathlib
import re
import shlex
from importlib import metadata

from placement_rpc.cmd import parser_tree
from tests import base

_ROOT = pathlib.Path(__file__).parents[2]
_PAGES = [_ROOT / "README.rst", *sorted((_ROOT / "docs" / "source").glob("*.rst"))]
# A program with what follows it on the line, up to what belongs to the shell.
_OURS = re.compile(r"(?<![\w.-])(?:[\w./-]*/)?(placement-rpc(?:-manage|-status|-conductor)?) "
                   r"([^|;&><#)`]*)")
_OPENSTACK = re.compile(r"(?<![\w./-])openstack ((?:--os-[\w-]+ [\d.]+ )?)([a-z][^|;&><#)`]*)")
# What a variable of the shell, or of a reader, stands for in most of them.
_VARIABLE, _UUID = re.compile(r"\$\w+|\bUUID\b"), "12345678-1234-1234-1234-123456789012"
_LITERAL = re.compile(r"``([^`]+)``")


def _lines(page):
    """Return the indented lines of a page, with those that a backslash continues joined."""
    text = re.sub(r"\\\n\s*", " ", page.read_text())
    return [line.strip() for line in text.splitlines() if re.match(r"\s{3,}\S", line)]


def _commands(page):
    """Return the lines of a page that are commands: they begin with one, or with ``$``."""
    return [re.sub(r"^(\$|#|sudo) +", "", line) for line in _lines(page)
            if "``" not in line and not line.startswith(("*", "-", "..", "{", "["))]


def _parsed(parser, words):
    """Return the error with which a parser refuses some words; None if it takes them."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            parser.parse_args(words)
    except SystemExit as end:
        return said.getvalue().strip().splitlines()[-1] if end.code else None
    return None


def _below(parser, words):
    """Return the parser of a command, and the words behind its name."""
    while words:
        choices = next((action.choices for action in parser._actions
                        if isinstance(action, argparse._SubParsersAction)), {})
        if words[0] not in choices:
            break
        parser, words = choices[words[0]], words[1:]
    return parser, words


class OwnProgramsTest(base.TestCase):

    def test_commands_of_code_blocks(self):
        found, wrong = 0, {}
        for page in _PAGES:
            for line in _commands(page):
                for program, rest in _OURS.findall(line):
                    if not line.lstrip("./").startswith((program, "venv", "opt")):
                        continue
                    found += 1
                    error = _parsed(parser_tree.PROGRAMS[program](), [
                        _VARIABLE.sub(_UUID, word) if word == "UUID" else word
                        for word in shlex.split(rest)])
                    if error:
                        wrong[f"{page.name}: {program} {rest}"] = error
        self.assertEqual({}, wrong)
        self.assertGreater(found, 60)

    def test_commands_within_sentences(self):
        """They may lack what a reader adds, so only names and options are compared."""
        found, wrong = 0, []
        for page in _PAGES:
            for text in _LITERAL.findall(" ".join(page.read_text().split())):
                match = re.fullmatch(r"(placement-rpc(?:-manage|-status|-conductor)?) (.*)", text)
                if not match:
                    continue
                found += 1
                program, rest = match.groups()
                parser, words = _below(parser_tree.PROGRAMS[program](), shlex.split(rest))
                known = {name for action in parser._actions for name in action.option_strings}
                wrong += [f"{page.name}: {text}: {word}" for word in words
                          if word.startswith("-") and word.partition("=")[0] not in known]
                if words and not words[0].startswith("-") and any(
                        isinstance(each, argparse._SubParsersAction) for each in parser._actions):
                    wrong.append(f"{page.name}: {text}: {words[0]}")
        self.assertEqual([], wrong)
        self.assertGreater(found, 40)


class OpenStackTest(base.TestCase):
    """Commands of ``openstack``, of this project's plugin and of others."""

    def setUp(self):
        super().setUp()
        self.known = {
            point.name.replace("_", " "): point for group in metadata.entry_points().groups
            if group.startswith("openstack.") for point in metadata.entry_points(group=group)}

    def test_commands_of_code_blocks(self):
        found, wrong = 0, {}
        for page in _PAGES:
            for line in _commands(page):
                for _, rest in _OPENSTACK.findall(line):
                    found += 1
                    error = self.error_of(shlex.split(_VARIABLE.sub(_UUID, rest)))
                    if error:
                        wrong[f"{page.name}: openstack {rest}"] = error
        self.assertEqual({}, wrong)
        self.assertGreater(found, 50)

    def error_of(self, words):
        name = next((" ".join(words[:count]) for count in range(len(words), 0, -1)
                     if " ".join(words[:count]) in self.known), None)
        if name is None:
            return "there is no such command"
        point = self.known[name]
        if not point.value.startswith("placement_rpc."):
            return None
        parser = point.load()(None, None).get_parser(name)
        return _parsed(parser, words[len(name.split()):])
