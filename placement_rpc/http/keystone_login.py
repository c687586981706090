# SPDX-License-Identifier: Apache-2.0
"""Pass a login of the page on to keystone. It needs the extra ``keystone``.

Neither passwords nor tokens are stored or logged here: the answer is the only copy of the token.
"""

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1 import loading, session
from keystoneauth1.identity import v3

from placement_rpc import exception
from placement_rpc.bodies import Limits
from placement_rpc.http import bodies, errors

_GROUP = "keystone_authtoken"
_LIMITS = Limits(size=16 * 1024, elements=64, depth=4)
_TEXT = {"type": "string", "maxLength": 1024}
_BODY = bodies.compiled({
    "type": "object", "required": ["user", "password"], "additionalProperties": False,
    "properties": dict.fromkeys(
        ("user", "password", "user_domain", "project", "project_domain"), _TEXT)})
_DOMAIN = "Default"


class Refused(errors.Unauthorized):
    message = "Keystone does not accept this user, password and project"


class KeystoneLogin:
    """``keystone``: a user's name and password are exchanged for a token of a project.

    :param conf: :class:`oslo_config.cfg.ConfigOpts` with the options of ``[keystone_authtoken]``
    """

    kind = "keystone"

    def __init__(self, conf):
        self._conf = conf

    def answer(self, req):
        """Return the document of a new token.

        It has ``token``, ``expires_at``, ``user``, ``project`` and ``project_id``.

        :param req: :class:`falcon.Request` with a JSON body of ``user`` and ``password``, and
            ``user_domain``, ``project`` and ``project_domain`` if they are not the defaults
        :raises Refused: if keystone refuses them
        :raises ServiceUnavailable: if keystone does not answer as it should
        """
        # A page of another origin cannot send this type without being asked for permission.
        bodies.check_content_type(req)
        body = bodies.read(req, _LIMITS)
        bodies.check(_BODY, body, "JSON does not validate")
        try:
            access = self._plugin(body).get_access(self._session(req.remote_addr))
        except (keystone_errors.Unauthorized, keystone_errors.Forbidden,
                keystone_errors.BadRequest):
            raise Refused() from None
        except keystone_errors.ClientException as error:
            raise exception.ServiceUnavailable(
                reason=f"keystone cannot be asked now ({type(error).__name__}); try again "
                       "later") from None
        return {"token": access.auth_token, "expires_at": access.expires.isoformat(),
                "user": access.username, "project": access.project_name,
                "project_id": access.project_id}

    def _plugin(self, body):
        scope = {"project_name": body["project"],
                 "project_domain_name": body.get("project_domain") or _DOMAIN} if body.get(
                     "project") else {}
        return v3.Password(
            self._auth_url(), username=body["user"], password=body["password"],
            user_domain_name=body.get("user_domain") or _DOMAIN, reauthenticate=False, **scope)

    def _auth_url(self):
        """Return the address at which this service itself gets its token."""
        found = getattr(loading.load_auth_from_conf_options(self._conf, _GROUP), "auth_url", None)
        if not found:
            raise exception.ServiceUnavailable(
                reason="[keystone_authtoken] auth_url is not set; give a token")
        return found

    def _session(self, client):
        """Return a session with the middleware's certificates and time limit.

        Keystone's own log has the address of the client, not that of this service alone.
        """
        options = self._conf[_GROUP]
        return session.Session(
            verify=(options.cafile or True) if not options.insecure else False,
            cert=(options.certfile, options.keyfile) if options.certfile else None,
            timeout=options.http_connect_timeout, original_ip=client)
