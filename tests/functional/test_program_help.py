# SPDX-License-Identifier: Apache-2.0
"""Help, completion and manual pages of the programs, which are made from their parsers."""

import argparse
import pathlib
import resource
import shutil
import subprocess
import sys

from oslo_config import cfg
from oslo_log import log

from placement_rpc.cmd import (
    completion,
    config_sources,
    errors,
    man_pages,
    parser_tree,
    service_parser,
)
from tests import base

_ROOT = pathlib.Path(__file__).parents[2]
# Seconds of processor time of a program that only parses its arguments.
_LIMIT = 0.4
# Shells that complete a command line, and print what they offer.
_BASH = """
source /dev/stdin
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"_${1//-/_}"
echo "${COMPREPLY[*]}"
"""
_ZSH = """
compdef() {}
_describe() { print -- ${candidates%%:*} }
_files() {}
source /dev/stdin
words=("$@") CURRENT=$#
"_${1//-/_}"
"""
_LINES = (
    (("placement-rpc", ""), {"standalone", "providers", "completion", "--state-dir"}, {"sync"}),
    (("placement-rpc", "--state-dir", "x", "listen", "--format", ""),
     {"table", "json", "cloudevents"}, {"--count"}),
    (("placement-rpc", "listen", ""), {"--count", "--idle"}, {"--max-count", "listen"}),
    (("placement-rpc", "--config-file", ""), set(), {"listen"}),
    (("placement-rpc", "completion", ""), {"bash", "zsh"}, {"providers"}),
    (("placement-rpc-manage", "db", ""), {"sync", "online_data_migrations"}, {"outbox"}),
    (("placement-rpc-manage", "placement", "shadow", ""), {"--against", "--sample"}, {"import"}),
    (("placement-rpc-conductor", ""), {"--state-dir", "--log-file"}, {"--nodebug"}),
    (("placement-rpc-status", "upgrade", "check", ""), {"--json"}, {"check"}),
)


def _module(program):
    return program.removeprefix("placement-rpc-").replace("placement-rpc", "main")


class CompletionTest(base.TestCase):
    time_limit = 240

    def offered(self, shell, program, words):
        done = subprocess.run(
            [*shell, "-c", program, "test", *words], input=completion.script(shell[0]),
            capture_output=True, text=True, check=False)
        self.assertEqual((0, ""), (done.returncode, done.stderr), words)
        return set(done.stdout.split())

    def check(self, shell, program):
        for words, expected, others in _LINES:
            offered = self.offered(shell, program, words)
            self.assertEqual((expected, set()), (expected & offered, others & offered), words)
            if not expected:
                # The shell then offers files.
                self.assertEqual(set(), offered)

    def test_bash(self):
        self.check(["bash", "--norc"], _BASH)

    def test_zsh(self):
        self.assertIsNotNone(shutil.which("zsh"), "tools/system-packages installs it")
        self.check(["zsh", "-f"], _ZSH)


class HelpTest(base.TestCase):

    def test_every_command_and_option_has_help(self):
        for program, parser in parser_tree.PROGRAMS.items():
            for command in parser_tree.commands(parser()):
                self.assertTrue(command.help, (program, *command.names))
                self.assertTrue(command.parser.description, (program, *command.names))
                for action in command.parser._actions:
                    if not isinstance(action, argparse._SubParsersAction):
                        self.assertTrue(action.help, (program, *command.names, action.dest))

    def test_every_command_of_manage_names_the_function_that_runs_it(self):
        found = set()
        for command in parser_tree.commands(parser_tree.PROGRAMS["placement-rpc-manage"]()):
            if run := command.parser.get_default("run"):
                module, _, function = run.partition(".")
                self.assertTrue(callable(getattr(errors.service_module(module), function)))
                found.add(run)
        self.assertGreater(len(found), 20)

    def test_the_librarys_options_are_all_there_in_a_group_of_their_own(self):
        conf = cfg.ConfigOpts()
        log.register_options(conf)
        kept = [option for option, _group in conf._all_cli_opts()
                if not option.deprecated_for_removal]
        names = {each.name for each in kept} | {
            f"no{each.name}" for each in kept if isinstance(each, cfg.BoolOpt)}
        self.assertIn("use-json", names)
        for parser in (service_parser.conductor(), service_parser.status()):
            known = {name.lstrip("-") for action in parser._actions
                     for name in action.option_strings}
            # 'placement-rpc completion' is in the place of oslo.config's own.
            self.assertEqual({"shell-completion"},
                             {name.replace("_", "-") for name in names} - known)
            shown = parser.format_help()
            self.assertLess(shown.rindex("--state-dir"), shown.index("options of the log:"))
            self.assertLess(shown.index("options of the log:"), shown.rindex("--log-dir"))

    def test_they_are_passed_on(self):
        options = service_parser.conductor().parse_args(
            ["--config-file", "a", "-d", "--logfile", "b", "--use-json", "--nouse-syslog"])
        self.assertEqual(
            ["--config-file=a", "--debug", "--log-file=b", "--use-json", "--nouse-syslog"],
            config_sources.arguments(options))


class ManPageTest(base.TestCase):

    def test_they_are_those_of_this_release(self):
        for name, page in man_pages.pages().items():
            self.assertEqual(page, (_ROOT / "docs" / "man" / name).read_text(),
                             "'make sample' writes them")

    def test_they_have_every_command(self):
        for program, parser in parser_tree.PROGRAMS.items():
            page = man_pages.pages()[f"{program}.1"].replace("\\-", "-")
            for command in parser_tree.commands(parser()):
                for each in parser_tree.arguments(command.parser)[1:]:
                    self.assertIn(" ".join(each.help.split())[:40].replace("\\", "\\e"), page)


class StartTest(base.TestCase):
    """Processor time, which a busy machine does not change as it does the time that passes."""

    time_limit = 240

    def seconds(self, *arguments):
        """Return the least processor time of a few runs."""
        took = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-W", "ignore", "-m", *arguments], check=True,
                           capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(took)

    def test_help_version_and_completion(self):
        for program in parser_tree.PROGRAMS:
            for arguments in (["--help"], ["--version"]):
                self.assertLess(self.seconds(f"placement_rpc.cmd.{_module(program)}", *arguments),
                                _LIMIT, (program, *arguments))
        for arguments in (["main", "completion", "bash"], ["manage", "db", "sync", "--help"],
                          ["manage", "placement", "import", "--help"],
                          ["status", "upgrade", "check", "--help"]):
            self.assertLess(self.seconds(f"placement_rpc.cmd.{arguments[0]}", *arguments[1:]),
                            _LIMIT, arguments)
