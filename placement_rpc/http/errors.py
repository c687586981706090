# SPDX-License-Identifier: Apache-2.0
"""Errors as HTTP answers (HTTP.md, Errors; the API working group's guideline on errors)."""

import contextlib
import html
import http
import json
import logging
import math
import uuid

import falcon

from placement_rpc import exception
from placement_rpc.http import microversion, peer_errors

LOG = logging.getLogger(__name__)

# A detail may quote the request, which can be long.
_MAX_DETAIL = 4000
_RETRY_AFTER = 1


class Unauthorized(exception.PlacementException):
    code = "placement.unauthorized"
    http_status = 401
    message = "Authentication required"


class NotAcceptable(exception.PlacementException):
    code = peer_errors.UNDEFINED
    http_status = 406
    message = "Only {offered} is provided"


class UnsupportedMediaType(exception.InvalidInput):
    code = peer_errors.UNDEFINED
    http_status = 415
    message = "The media type {given} is not supported, use application/json"


class BodyTooLarge(exception.InvalidInput):
    code = "placement.input.body_too_large"
    http_status = 413
    message = "The body of a request has at most {limit} bytes"


class BadRequest(exception.InvalidInput):
    """A malformed request; the raising code gives the whole text."""

    code = peer_errors.UNDEFINED
    message = "{reason}"


@contextlib.contextmanager
def bad_request(*classes):
    """Answer 400, not 404, if something does not exist that the query or the body names.

    :param classes: classes of errors that mean 404 where the address names it
    """
    try:
        yield
    except classes as error:
        error.http_status = 400
        raise


@contextlib.contextmanager
def too_many_values():
    """Answer 400 if a parameter of the query has more values than are allowed."""
    try:
        yield
    except exception.BatchTooLarge as error:
        raise BadRequest(reason=exception.fill(
            "Invalid query string parameters: {what} has {size} values, and {limit} are allowed",
            error.kwargs)) from None


class AddressNotFound(exception.NotFound):
    code = peer_errors.UNDEFINED
    message = "The resource could not be found."


class MethodNotAllowed(exception.PlacementException):
    code = peer_errors.UNDEFINED
    http_status = 405
    message = "The method {method} is not allowed for this resource."


def document(status, detail, request_id, code, exact_code=None, **more):
    """Return the JSON document of one error.

    It has ``code`` at every microversion: the guideline asks for it, and programs read it.

    :param status: int
    :param code: str, that of OpenStack Placement where it has one
    :param exact_code: str, that of :mod:`placement_rpc.exception`; None if ``code`` is it
    :param more: further members of the error
    :returns: dict
    """
    return {"errors": [{
        "status": status, "title": http.HTTPStatus(status).phrase,
        "detail": detail[:_MAX_DETAIL], "code": code, "exact_code": exact_code or code,
        "request_id": request_id, **more}]}


def answer(req, resp, error, path=None):
    """Write an error into an answer.

    :param error: :class:`placement_rpc.exception.PlacementException`
    :param path: dict of the variable parts of the address
    """
    status = peer_errors.status(req.method, req.uri_template, error)
    more = {}
    if isinstance(error, microversion.UnacceptableVersion):
        more = {"min_version": microversion.text(microversion.MIN),
                "max_version": microversion.text(microversion.MAX)}
    elif isinstance(error, exception.EventsPruned):
        more = {"oldest_position": error.kwargs.get("oldest")}
    elif isinstance(error, MethodNotAllowed):
        resp.set_header("Allow", ", ".join(error.kwargs["allowed"]))
    if status in (503, 504):
        # A conductor's errors have fractions of seconds.
        resp.set_header("Retry-After", str(math.ceil(
            error.kwargs.get("retry_after", _RETRY_AFTER))))
    resp.status = status
    found = document(
        status, peer_errors.detail(req.method, req.uri_template, path or {}, error),
        req.context.request_id, peer_errors.code(
            req.method, req.uri_template, req.context.version, error), error.code, **more)
    if req.client_prefers(("application/json", "text/html")) == "text/html":
        resp.content_type = "text/html; charset=UTF-8"
        resp.data = _page(found["errors"][0]).encode()
        return
    resp.content_type = "application/json"
    resp.data = json.dumps(found).encode()


def unopened(error, start_response):
    """Answer a request with 503 while the application cannot be made.

    :param error: :class:`placement_rpc.exception.PlacementException`, why it cannot
    :param start_response: WSGI's callable
    :returns: list of bytes
    """
    request_id = f"req-{uuid.uuid4()}"
    # Faults of the configuration or of the schema are for the operator, so only the log has them.
    start_response("503 Service Unavailable", [
        ("content-type", "application/json"), ("retry-after", str(_RETRY_AFTER)),
        ("x-openstack-request-id", request_id), ("vary", microversion.HEADER)])
    return [json.dumps(document(
        503, "The service is not ready; its log says why", request_id, error.code)).encode()]


def _page(error):
    title = html.escape(f"{error['status']} {error['title']}")
    return (f"<html><head><title>{title}</title></head><body><h1>{title}</h1>"
            f"<p>{html.escape(error['detail'])}</p></body></html>")


def on_expected(req, resp, error, path):
    """Handle an error of :mod:`placement_rpc.exception`."""
    answer(req, resp, error, path)


def on_library(req, resp, error, _params):
    """Handle an error that Falcon raises: an unknown address, a malformed header."""
    if isinstance(error, falcon.HTTPNotFound):
        answer(req, resp, AddressNotFound())
        return
    found = BadRequest(reason=error.description or error.title)
    found.http_status = error.status_code
    answer(req, resp, found)


def on_defect(req, resp, error, _params):
    """Handle an unexpected exception: log it under an incident id that the answer names."""
    LOG.error("Incident %s: a request failed", req.context.request_id, exc_info=error)
    answer(req, resp, exception.RemoteFailure(
        method="the request", incident=req.context.request_id))
