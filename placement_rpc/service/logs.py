# SPDX-License-Identifier: Apache-2.0
"""The log of a program: set up by oslo.log, and never a reason for a call to fail."""

import functools
import logging
from logging import handlers

from oslo_config import cfg
from oslo_log import log

from placement_rpc.conf import PROJECT


def setup(conf: cfg.ConfigOpts) -> None:
    """Set up the log as the options of oslo.log say.

    If its file cannot be opened after a rotation, each line goes to standard error, with the
    reason, until the file can be opened.
    """
    log.setup(conf, PROJECT)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, handlers.WatchedFileHandler):
            # logging handles errors of writing, but not those of opening.
            handler.emit = functools.partial(  # type: ignore[method-assign]
                _emit, handler, handler.emit)


def _emit(handler, emit, record):
    try:
        emit(record)
    except OSError:
        handler.handleError(record)
