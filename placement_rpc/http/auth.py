# SPDX-License-Identifier: Apache-2.0
"""Who somebody is (HTTP.md, Access). What they may do is :mod:`placement_rpc.policy`'s."""

from placement_rpc.context import RequestContext
from placement_rpc.http import errors


class DevelopmentTokens:
    """``noauth2``: everybody is who they say, in a token of ``USER[:PROJECT]``.

    The user ``admin`` has the role admin and nobody else has any; ``x-roles`` and
    ``x-project-id`` override.
    """

    challenge = "Placement-Development"

    def identify(self, req):
        """:returns: :class:`RequestContext`; :raises Unauthorized: without a token"""
        token = req.get_header("X-Auth-Token")
        if token is None:
            raise errors.Unauthorized()
        user, _, project = token.partition(":")
        roles = req.get_header("X-Roles")
        if roles is None:
            roles = "admin" if user == "admin" else ""
        scope = req.get_header("OpenStack-System-Scope")
        return RequestContext(
            user_id=user, project_id=req.get_header("X-Project-Id") or project or user,
            roles=_split(roles), system_scope=scope)


class KeystoneTokens:
    """What keystonemiddleware found out about a token, in front of this application.

    :param uri: str, where a keystone is that gives tokens
    """

    def __init__(self, uri):
        self.challenge = f'Keystone uri="{uri}"'

    def identify(self, req):
        """:returns: :class:`RequestContext`; :raises Unauthorized: without a valid token"""
        if req.get_header("X-Identity-Status") != "Confirmed":
            raise errors.Unauthorized()
        return RequestContext(
            user_id=req.get_header("X-User-Id"), project_id=req.get_header("X-Project-Id"),
            roles=_split(req.get_header("X-Roles") or ""),
            system_scope=req.get_header("OpenStack-System-Scope"))


def _split(roles):
    return [role.strip() for role in roles.split(",") if role.strip()]


def register_keystone(conf):
    """Make ``[keystone_authtoken]`` known to a configuration."""
    from keystonemiddleware import opts
    for group, options in opts.list_auth_token_opts():
        conf.register_opts(options, group=group)


def strategy(conf):
    """:returns: tuple of what identifies people, and a callable that puts a middleware before an
    application"""
    if conf.api.auth_strategy == "noauth2":
        return DevelopmentTokens(), lambda application: application
    # An extra: who has no keystone needs none of it.
    from keystonemiddleware import auth_token
    register_keystone(conf)

    def protect(application):
        # Whether an address needs a token at all is decided behind it.
        return auth_token.AuthProtocol(
            application, {"oslo_config_config": conf, "delay_auth_decision": True})

    return KeystoneTokens(conf.keystone_authtoken.www_authenticate_uri or ""), protect
