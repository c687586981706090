# SPDX-License-Identifier: Apache-2.0
"""Authentication (HTTP.md, Access). Authorization is in :mod:`placement_rpc.policy`."""

from placement_rpc import exception
from placement_rpc.context import RequestContext
from placement_rpc.http import errors

# Set in the environment of a request whose token could not be checked. No client can set it: what
# a client sends is under HTTP_*.
_UNCHECKED = "placement_rpc.identity_unavailable"
_CONFIRMED = "Confirmed"
# The middleware sets a header of the same name for each.
_IDENTITY = (
    "user_id", "project_id", "domain_id", "user_domain_id", "project_domain_id",
    "service_user_id", "service_user_domain_id", "service_project_id",
    "service_project_domain_id")

_KEYSTONE_DEFAULTS = {"http_connect_timeout": 5, "service_type": "placement"}


class DevelopmentTokens:
    """``noauth2``: accept any token and read user and project from it, as ``USER[:PROJECT]``.

    The user ``admin`` has the role admin, other users have no role. The headers ``x-roles`` and
    ``x-project-id`` override both.
    """

    challenge = "Placement-Development"

    def identify(self, req, request_id):
        """Return the :class:`RequestContext` of a request.

        :param request_id: str, the id that the request has here
        :raises Unauthorized: if it has no token
        """
        token = req.get_header("X-Auth-Token")
        if token is None:
            raise errors.Unauthorized()
        user, _, project = token.partition(":")
        roles = req.get_header("X-Roles")
        if roles is None:
            roles = "admin" if user == "admin" else ""
        scope = req.get_header("OpenStack-System-Scope")
        return RequestContext(
            request_id=request_id, user_id=user,
            project_id=req.get_header("X-Project-Id") or project or user,
            roles=_split(roles), system_scope=scope)


class KeystoneTokens:
    """Read the identity that keystonemiddleware, in front of this application, got for a token."""

    #: The middleware adds it to answers.
    challenge = None

    def identify(self, req, request_id):
        """Return the :class:`RequestContext` of a request.

        :param request_id: str, the id that the request has here
        :raises Unauthorized: if it has no valid token, or if it has a token of a service, too,
            that is not valid
        :raises ServiceUnavailable: if keystone cannot be asked, so that this is not known
        """
        if req.env.get(_UNCHECKED):
            raise exception.ServiceUnavailable(
                reason="the token cannot be checked with keystone now; try again later")
        # Without a token of a service there is no status of it.
        if (req.get_header("X-Identity-Status"), req.get_header(
                "X-Service-Identity-Status") or _CONFIRMED) != (_CONFIRMED, _CONFIRMED):
            raise errors.Unauthorized()
        return RequestContext(
            request_id=request_id, roles=_split(req.get_header("X-Roles") or ""),
            service_roles=_split(req.get_header("X-Service-Roles") or ""),
            is_admin_project=(req.get_header("X-Is-Admin-Project") or "true").lower() == "true",
            system_scope=req.get_header("OpenStack-System-Scope"),
            **{name: req.get_header(f"X-{name.replace('_', '-')}") for name in _IDENTITY})


def _split(roles):
    return [role.strip() for role in roles.split(",") if role.strip()]


def register_keystone(conf):
    """Register the options of ``[keystone_authtoken]``.

    Two have other defaults than in the library. Without a time limit, a keystone that accepts
    connections and does not answer would stop every thread; and the service knows its own type,
    which the access rules of application credentials name.
    """
    from keystonemiddleware import opts
    for group, options in opts.list_auth_token_opts():
        conf.register_opts(options, group=group)
    for name, value in _KEYSTONE_DEFAULTS.items():
        conf.set_default(name, value, group="keystone_authtoken")


def strategy(conf):
    """Return the configured authentication strategy.

    :returns: tuple of the object that identifies requests, and a callable that wraps an
        application in the middleware that the strategy needs; its second argument is the set of
        paths that need no token
    """
    if conf.api.auth_strategy == "noauth2":
        return DevelopmentTokens(), lambda application, _public: application
    # Imported here because keystonemiddleware is an extra, which noauth2 does not need.
    from placement_rpc.http import keystone
    register_keystone(conf)
    return KeystoneTokens(), (
        lambda application, public: keystone.protect(application, conf, _UNCHECKED, public))
