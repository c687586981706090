# SPDX-License-Identifier: Apache-2.0
"""keystonemiddleware in front of the application. It needs the extra ``keystone``."""

import logging

from keystoneauth1 import exceptions as keystone_errors
from keystonemiddleware import auth_token

from placement_rpc import exception

LOG = logging.getLogger(__name__)

# What the library takes for an invalid token: keystone does not answer, answers with an error of
# its own, or refuses the user of this service.
_HIDDEN = (keystone_errors.ConnectFailure, keystone_errors.DiscoveryFailure,
           keystone_errors.RequestTimeout, auth_token.ServiceError)
# What it raises in addition: for example, keystone has no endpoint, or no valid certificate.
_RAISED = keystone_errors.ClientException


class _Unavailable(Exception):
    """A token could not be checked."""


class _AuthProtocol(auth_token.AuthProtocol):
    """The middleware, which tells a token that cannot be checked from one that is not valid.

    With ``delay_auth_decision`` the library takes both for an invalid token, and the client would
    be told that it is not authenticated.
    """

    def fetch_token(self, *args, **kwargs):
        try:
            return super().fetch_token(*args, **kwargs)
        except _RAISED as error:
            LOG.error("A token cannot be checked: %s: %s", type(error).__name__, error)
            raise _Unavailable from error
        except auth_token.InvalidToken as error:
            if isinstance(error.__context__, _HIDDEN):
                raise _Unavailable from error
            raise

    def process_response(self, response):
        """Add the address of keystone to an answer with 401, if it is configured or known."""
        try:
            return super().process_response(response)
        except _RAISED:
            # An option names it, or else the catalogue, which only keystone has.
            response.headers["WWW-Authenticate"] = "Keystone"
            return response


def protect(application, conf, unchecked, public):
    """Wrap an application in the middleware.

    The application decides about requests without a valid token.

    :param conf: :class:`oslo_config.cfg.ConfigOpts`
    :param unchecked: str, the key that is set in the environment of a request whose token could
        not be checked
    :param public: set of str, the paths at which no token is checked: they are answered while
        keystone does not answer, and as fast as before
    :returns: a WSGI callable
    :raises InvalidInput: if the credentials of this service are not complete
    """
    try:
        protected = _AuthProtocol(
            application, {"oslo_config_config": conf, "delay_auth_decision": True})
    except _RAISED as error:
        raise exception.InvalidInput(what="[keystone_authtoken]", reason=str(error)) from error

    def answer(environ, start_response):
        if (environ.get("PATH_INFO") or "/") in public:
            return application(environ, start_response)
        try:
            return protected(environ, start_response)
        except _Unavailable:
            # The middleware has removed the identity headers that the client sent.
            environ[unchecked] = True
            return application(environ, start_response)

    return answer
