# SPDX-License-Identifier: Apache-2.0
"""Errors of the programs: one clear line instead of a traceback, which ``--debug`` shows."""

import contextlib
import functools
import importlib
import io
import logging
import os
import re
import signal
import sys
import traceback

from placement_rpc import exception
from placement_rpc.cmd import interrupts
from placement_rpc.service import interpreter

_DEBUG, _DEBUG_SHORT = "--debug", "-d"


class ExtraMissing(Exception):
    """A command needs an extra of the package that is not installed."""


def service_module(name):
    """Import a module of the programs that needs the extra ``service``.

    A client's installation lacks the extra, so a program imports such a module only for the
    command that needs it.

    :param name: str, the name of the module in :mod:`placement_rpc.cmd`
    :raises ExtraMissing: if the extra is not installed
    """
    try:
        with interpreter.importing():
            return importlib.import_module(f"placement_rpc.cmd.{name}")
    except ModuleNotFoundError as error:
        raise ExtraMissing(
            f"{error.name} is not installed; this command needs the extra 'service': "
            "pip install 'placement-rpc[service]'") from None


# Their text says what is wrong. Any other error is a defect, or an outage that was not expected.
_EXPECTED = (ExtraMissing, exception.PlacementException, OSError, ValueError)
# Those of libraries, by the module of the class, which a program loads only if it needs it.
_EXPECTED_OF_LIBRARIES = (("oslo_config.cfg", "Error"), ("oslo_log.log", "LogConfigError"),
                          ("oslo_messaging", "InvalidTransportURL"))
# How oslo.config writes the place of a value.
_LOCATION = re.compile(r"LocationInfo\(location=<[^>]*>, detail='([^']*)'\)")
_LONGEST = 1000
# What a shell reports for a program that SIGPIPE ends.
_PIPE_CLOSED = 128 + signal.SIGPIPE


def one_line_errors(program, failure=1):
    """Decorate a ``main`` so that it prints one line for an error.

    Its exit code is then ``failure``. It is 130 after an interrupt, and 141 if the reader of its
    output closed the pipe: a shell reports the same for other programs. If the arguments have
    ``--debug``, the traceback is printed too.

    :param program: str, the name at the beginning of the line
    :param failure: int, the exit code
    """
    def decorate(main):
        @functools.wraps(main)
        def run(args=None):
            _mend_streams()
            try:
                with interrupts.kept():
                    code = main(args)
                    sys.stdout.flush()
                    return code
            except KeyboardInterrupt:
                return 130
            except BrokenPipeError:
                # Without this, the interpreter would fail again when it flushes standard output
                # at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return _PIPE_CLOSED
            except Exception as error:
                report(program, error, args)
                return failure
        return run
    return decorate


def _mend_streams():
    """Have a closed standard stream read or write nothing; escape what an encoding lacks.

    Python has None in place of a stream that was closed by ``>&-``.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            # Not closed: the interpreter flushes it at the end.
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def report(program, error, args=None):
    """Print an error to standard error: in one line, and before it the traceback in debug mode.

    :param program: str, the name at the beginning of the line
    :param args: list of str, the arguments of the program; None for those of this process
    """
    if is_debug(args):
        traceback.print_exception(error)
    text = _line(error)
    if not _is_expected(error):
        text = f"unexpected error: {text}; {_DEBUG} shows the traceback"
    print(f"{program}: {text}", file=sys.stderr)


def is_debug(args=None):
    """Return whether the arguments ask for tracebacks and the log.

    :param args: as of :func:`report`
    """
    return not {_DEBUG, _DEBUG_SHORT}.isdisjoint(sys.argv[1:] if args is None else args)


@contextlib.contextmanager
def quietly(args=None):
    """Keep the log off the terminal for a block, unless the program is in debug mode.

    A program that an operator waits for reports an error once, in its last line. What goes to a
    file is logged all the same.

    :param args: as of :func:`report`
    """
    root = logging.getLogger()
    silenced = [] if is_debug(args) else [
        (handler, handler.level) for handler in root.handlers
        if getattr(handler, "stream", None) in (sys.stderr, sys.stdout)]
    for handler, _ in silenced:
        handler.setLevel(logging.CRITICAL + 1)
    # Without any handler, Python prints warnings to standard error.
    nothing = logging.NullHandler() if not root.handlers and not is_debug(args) else None
    if nothing is not None:
        root.addHandler(nothing)
    try:
        yield
    finally:
        for handler, level in silenced:
            handler.setLevel(level)
        if nothing is not None:
            root.removeHandler(nothing)


def _is_expected(error):
    """Return whether the text of an error says what is wrong."""
    # An error of a library that has not been loaded cannot have been raised.
    loaded = [(sys.modules[module], name) for module, name in _EXPECTED_OF_LIBRARIES
              if module in sys.modules]
    return isinstance(error, (*_EXPECTED, *(getattr(module, name) for module, name in loaded)))


def _line(error):
    """Return an error in one line, with its cause if that says more."""
    text = _LOCATION.sub(r"\1", str(error).strip())
    if isinstance(error, OSError) and error.strerror and isinstance(
            error.filename, (str, bytes)):
        text = f"{os.fsdecode(error.filename)}: {error.strerror}"
    if not _is_expected(error):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    cause = error.__cause__
    if isinstance(error, exception.StoreUnavailable) and cause is not None:
        # The text of the driver does not travel to clients; it is for the operator. SQLAlchemy
        # adds its own lines to it.
        first = str(getattr(cause, "orig", None) or cause).strip().partition("\n")[0]
        text = f"{text}: {first}" if first and first not in text else text
    return " ".join((text or type(error).__name__).split())[:_LONGEST]
