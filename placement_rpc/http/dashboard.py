# SPDX-License-Identifier: Apache-2.0
"""The page for people at ``/ui/``: static files of the package, settings and the login.

The page calls the public API of the same origin, with the caller's token. Its files need none.
"""

import hashlib
import http
import importlib.resources
import json
import logging
import uuid

import falcon

import placement_rpc
from placement_rpc import exception
from placement_rpc.http import errors, login, preconditions

LOG = logging.getLogger(__name__)

#: The address below which everything of the page is
PREFIX = "/ui/"
_INDEX, _SETTINGS, _LOGIN = "index.html", "settings.json", "auth"
_TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
          ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
          ".json": "application/json",
          "": "text/plain; charset=utf-8"}
# The page can load nothing from elsewhere and send nothing there, and no script can turn text
# into elements or into another script.
_CONTENT_SECURITY_POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'",
    "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    "require-trusted-types-for 'script'", "trusted-types 'none'"))
_HEADERS = (
    ("content-security-policy", _CONTENT_SECURITY_POLICY), ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"), ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"))
_READS = ("GET", "HEAD")


class _File:
    """A file of the page, in memory.

    :param name: str, its path below :data:`PREFIX`
    :param content: bytes
    """

    def __init__(self, name, content):
        self.content = content
        # After an upgrade the address is the same and the content another.
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        dot = name.rfind(".")
        self.content_type = _TYPES[name[dot:] if dot >= 0 else ""]


def _files(directory, prefix=""):
    """Yield the files of a directory as pairs of name and :class:`_File`."""
    for entry in directory.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            name = prefix + entry.name
            yield name, _File(name, entry.read_bytes())


class Dashboard:
    """Answer requests below ``/ui/``, and pass others to the application.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param application: WSGI callable
    """

    def __init__(self, conf, application):
        self._application = application
        self._login = login.strategy(conf)
        self._files = dict(_files(importlib.resources.files(placement_rpc) / "ui"))
        self._files[""] = self._files.pop(_INDEX)
        self._files[_SETTINGS] = _File(_SETTINGS, json.dumps(
            {"login": self._login.kind, "release": placement_rpc.__version__}).encode())

    def __call__(self, environ, start_response):
        path = environ.get("PATH_INFO") or "/"
        if path != PREFIX[:-1] and not path.startswith(PREFIX):
            return self._application(environ, start_response)
        name, method = path[len(PREFIX):], environ["REQUEST_METHOD"]
        if name == _LOGIN and self._login.answer is not None:
            return self._log_in(environ, start_response)
        if path != PREFIX[:-1] and name not in self._files:
            return _send(start_response, 404, b"There is no such file.\n")
        if method not in _READS:
            return _send(start_response, 405, b"Only GET is allowed.\n", allow="GET, HEAD")
        if path == PREFIX[:-1]:
            # Relative, so that it is right behind a proxy that adds a prefix.
            return _send(start_response, 308, b"", location="ui/")
        return _send_file(environ, start_response, self._files[name])

    def _log_in(self, environ, start_response):
        if environ["REQUEST_METHOD"] != "POST":
            return _send(start_response, 405, b"Only POST is allowed.\n", allow="POST")
        request_id, more = f"req-{uuid.uuid4()}", {}
        try:
            status, body = 200, self._login.answer(falcon.Request(environ))
        except exception.PlacementException as error:
            status, body = error.http_status, errors.document(
                error.http_status, error.text, request_id, error.code)
            if status == 503:
                more = {"retry_after": "1"}
        except Exception:
            LOG.exception("Incident %s: a login failed", request_id)
            status, body = 500, errors.document(
                500, f"The login failed; the log has incident {request_id}", request_id,
                exception.RemoteFailure.code)
        return _send(start_response, status, json.dumps(body).encode(), _TYPES[".json"],
                     cache_control="no-store", x_openstack_request_id=request_id, **more)


def _send_file(environ, start_response, file):
    # Revalidated each time, so that a page never mixes files of two releases.
    how = {"etag": file.etag, "cache_control": "no-cache"}
    if preconditions.is_not_modified(environ.get("HTTP_IF_NONE_MATCH"), file.etag):
        return _send(start_response, 304, None, **how)
    found = _send(start_response, 200, file.content, file.content_type, **how)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else found


def _send(start_response, status, content, content_type=_TYPES[""], **headers):
    """Start an answer with the headers that all have; return its body.

    :param content: bytes; None for no body
    """
    start_response(f"{status} {http.HTTPStatus(status).phrase}", [
        *_HEADERS, *((name.replace("_", "-"), value) for name, value in headers.items()),
        *(() if content is None else (
            ("content-type", content_type), ("content-length", str(len(content)))))])
    return [content] if content else []
