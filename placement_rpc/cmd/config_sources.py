# SPDX-License-Identifier: Apache-2.0
"""The arguments by which the programs find their configuration, and those of the log."""

import argparse

_PASSED_ON = "passed_on"
# Names, metavar and help of oslo.log's options: a program passes them on, and its help does not
# load oslo.log.
_LOGGING = (
    ("--log-file", "--logfile", "PATH", "write the log to this file (default: standard error)"),
    ("--log-dir", "--logdir", "PATH", "directory of a log file with a relative path"),
    ("--log-config-append", "--log-config", "--log_config", "PATH",
     "logging configuration file of Python; the other options of the log are then ignored"),
    ("--log-date-format", "FORMAT", "how times are written, in the form of strftime"),
    ("--syslog-log-facility", "NAME", "facility of syslog (default: LOG_USER)"),
)
_LOGGING_FLAGS = (
    ("use-syslog", "send the log to syslog"),
    ("use-journal", "send the log to systemd's journal"),
    ("use-json", "write each line of the log as JSON"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--config-file`` and ``--config-dir``."""
    parser.add_argument(
        "--config-file", action="append", default=[], metavar="PATH",
        help="configuration file; may be given several times "
             "(default: /etc/placement-rpc/placement-rpc.conf)")
    parser.add_argument(
        "--config-dir", action="append", default=[], metavar="PATH",
        help="directory of configuration files, whose *.conf are read after the other files, in "
             "alphabetical order; may be given several times "
             "(default: /etc/placement-rpc/placement-rpc.conf.d)")


def add_state_dir(parser: argparse.ArgumentParser, default: str = "./state") -> None:
    """Add ``--state-dir``.

    :param default: what is used without it, as the help says it
    """
    parser.add_argument(
        "--state-dir", metavar="PATH",
        help="state directory of a standalone service, whose database and bus are used if none "
             f"are configured (default: {default})")


class _PassOn(argparse.Action):
    """Keeps an option for oslo.config, which reads it from the arguments."""

    def __call__(self, parser, namespace, values, option_string=None):
        name = self.option_strings[0]
        kept = [name] if self.nargs == 0 else [f"{name}={values}"]
        setattr(namespace, _PASSED_ON, [*getattr(namespace, _PASSED_ON, ()), *kept])


def add_logging(parser: argparse.ArgumentParser) -> None:
    """Add the options of oslo.log: ``--debug``, and the others in a group of their own."""
    _add_flag(parser, ("--debug", "-d"), "set the log's level to DEBUG, and show the traceback of "
                                         "an error")
    group = parser.add_argument_group("options of the log")
    for *names, metavar, text in _LOGGING:
        group.add_argument(*names, action=_PassOn, metavar=metavar, dest=argparse.SUPPRESS,
                           help=text)
    for name, text in _LOGGING_FLAGS:
        _add_flag(group, (f"--{name}",), text)


def _add_flag(parser, names, text):
    """Add a flag of oslo.config, and the one that takes it back, which help leaves out."""
    parser.add_argument(*names, action=_PassOn, nargs=0, dest=argparse.SUPPRESS, help=text)
    parser.add_argument(f"--no{names[0][2:]}", action=_PassOn, nargs=0, dest=argparse.SUPPRESS,
                        help=argparse.SUPPRESS)


def arguments(options: argparse.Namespace) -> list[str]:
    """Return the arguments for :func:`placement_rpc.conf.new_config`.

    :param options: the parsed arguments of the program
    """
    return [*(f"--config-file={path}" for path in options.config_file),
            *(f"--config-dir={path}" for path in options.config_dir),
            *getattr(options, _PASSED_ON, ())]


def literal(text: str) -> str:
    """Return the value of an option that is to be a text as it is.

    oslo.config would look for the names of other options after ``$``.
    """
    return text.replace("$", r"\$")


def override(conf, name: str, text: str, group: str | None = None) -> None:
    """Set an option to a text as it is.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    """
    conf.set_override(name, literal(text), group)
