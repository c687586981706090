# SPDX-License-Identifier: Apache-2.0
"""A private keystone with the users of a small cloud, as a fixture.

The program is the release in ``tests/constraints/keystone.txt``, in an environment of its own. The
name of each user is its password, too.
"""

import atexit
import functools
import os
import shutil

from keystoneauth1 import session
from keystoneauth1.identity import v3
from keystoneclient.v3 import client

from placement_rpc.testing.server_process import ServerProcess, reserve_port
from tests import environments

REGION = "here"
#: The project in which the users of services have their roles.
SERVICE = "service"
PROJECTS = (SERVICE, "operator", "blue", "red")
#: Name of each user except :data:`ADMIN`, to the roles that it has in each project.
USERS = {
    # Of services, as deployments make them today; old-nova as before there was the role service.
    "placement": {SERVICE: ("service",)},
    "nova": {SERVICE: ("service",)},
    "old-nova": {SERVICE: ("admin",)},
    # Of people.
    "operator": {"operator": ("admin",), "blue": ("reader",)},
    "manager": {"blue": ("manager",)},
    "member": {"blue": ("member",), "red": ("reader",)},
    "reader": {"blue": ("reader",)},
    "auditor": {"operator": ("auditor",)},
    "stranger": {},
}
#: The administrator of the whole cloud, in the project of the same name.
ADMIN = "admin"
_DOMAIN = "default"
# Passwords that are names gain nothing from a slow hash.
_CONFIGURATION = """
[DEFAULT]
public_endpoint = {url}
[database]
connection = sqlite:///{directory}/keystone.sqlite
[fernet_tokens]
key_repository = {directory}/tokens
[fernet_receipts]
key_repository = {directory}/receipts
[identity]
password_hash_rounds = 4
[token]
expiration = {expiration}
"""
# The application is loaded before the server listens.
_SERVER = """
bind = {address!r}
wsgi_app = "keystone.wsgi.api:application"
preload_app = True
worker_class = "gthread"
threads = 4
control_socket_disable = True
"""


class Keystone(ServerProcess):
    """A keystone on SQLite behind gunicorn, which can be stopped and started again.

    :param expiration: int, seconds that a token is valid
    :ivar url: str, its address without a version
    """

    _ready = "Listening at"

    def __init__(self, expiration=3600):
        super().__init__()
        self._expiration = expiration

    def _setUp(self):
        super()._setUp()
        self.url = f"http://127.0.0.1:{reserve_port(self)}"
        self.auth_url = f"{self.url}/v3"
        # It finds its configuration in its directory: keystone would take arguments for its own.
        self._command = environments.program("keystone").module("gunicorn")
        self.env = {"OS_KEYSTONE_CONFIG_DIR": self.tempdir, "HOME": self.tempdir}
        self._fill()
        self.start()

    def _fill(self):
        """Write the files that it starts with."""
        shutil.copytree(_template().tempdir, self.tempdir, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("log"))
        self._configure()

    def _configure(self):
        with open(f"{self.tempdir}/keystone.conf", "w") as file:
            file.write(_CONFIGURATION.format(
                directory=self.tempdir, url=self.url, expiration=self._expiration))
        with open(f"{self.tempdir}/gunicorn.conf.py", "w") as file:
            file.write(_SERVER.format(address=self.url.removeprefix("http://")))

    def send_signal(self, number):
        """Send a signal to all of its processes."""
        os.killpg(self.process.pid, number)

    def plugin(self, user, project=None, password=None, **scope):
        """Return what authenticates a session of keystoneauth as a user.

        :param project: str; without it the token has no project
        :param scope: another scope, as :class:`keystoneauth1.identity.v3.Password` names it
        """
        if project is not None:
            scope |= {"project_name": project, "project_domain_id": _DOMAIN}
        return v3.Password(self.auth_url, username=user, user_domain_id=_DOMAIN,
                           password=password or user, **scope)

    def token(self, user, project=None, **how):
        """Return a new token of a user."""
        return self.token_of(self.plugin(user, project, **how))

    @staticmethod
    def token_of(plugin):
        """Return the token that a plugin of keystoneauth gets."""
        return plugin.get_token(session.Session())

    def client(self, user=ADMIN, project="admin"):
        """Return a client of keystone's API that works as a user."""
        return client.Client(session=session.Session(auth=self.plugin(user, project)),
                             endpoint_override=self.auth_url)

    def add_service(self, kind, url):
        """Add a service and its public endpoint to the catalogue; return the service."""
        keystone = self.client()
        service = keystone.services.create(kind, kind)
        keystone.endpoints.create(service, url, "public", REGION)
        return service

    def environment(self, user, project=None):
        """Return the environment variables with which a user calls ``openstack``."""
        return {"OS_AUTH_URL": self.auth_url, "OS_USERNAME": user, "OS_PASSWORD": user,
                "OS_USER_DOMAIN_ID": _DOMAIN, "OS_IDENTITY_API_VERSION": "3",
                "OS_REGION_NAME": REGION, **({} if project is None else {
                    "OS_PROJECT_NAME": project, "OS_PROJECT_DOMAIN_ID": _DOMAIN})}

    def middleware(self, **options):
        """Return options of ``[keystone_authtoken]`` for a service: a dict."""
        return {"www_authenticate_uri": self.url, "auth_url": self.url, "auth_type": "password",
                "username": "placement", "password": "placement", "project_name": SERVICE,
                "user_domain_id": _DOMAIN, "project_domain_id": _DOMAIN, **options}


class _Template(Keystone):
    """A keystone that others are copies of, which takes them less time than a start from nothing.

    Its catalogue names the address that each copy has in its configuration.
    """

    def _fill(self):
        self._configure()
        for command in (
                ("db_sync",), ("fernet_setup", "--keystone-user", str(os.getuid()),
                               "--keystone-group", str(os.getgid())),
                ("bootstrap", "--bootstrap-username", ADMIN, "--bootstrap-password", ADMIN,
                 "--bootstrap-region-id", REGION, *(
                     part for interface in ("public", "internal", "admin")
                     for part in (f"--bootstrap-{interface}-url", "$(public_endpoint)s/v3")))):
            self._run(*environments.program("keystone").program(
                "keystone-manage", "--config-file", f"{self.tempdir}/keystone.conf"), *command)

    def start(self):
        super().start()
        self._populate(self.client())
        self.stop()

    @staticmethod
    def _populate(keystone):
        keystone.roles.create("auditor")
        roles = {role.name: role for role in keystone.roles.list()}
        projects = {name: keystone.projects.create(name, _DOMAIN) for name in PROJECTS}
        for name, granted in USERS.items():
            user = keystone.users.create(name, _DOMAIN, password=name)
            for project, names in granted.items():
                for each in names:
                    keystone.roles.grant(roles[each], user=user, project=projects[project])
        administrator = keystone.users.find(name=ADMIN)
        keystone.roles.grant(roles["admin"], user=administrator, domain=_DOMAIN)


def started(fixture):
    """Start a fixture that ends with this process, and return it."""
    fixture.setUp()
    atexit.register(fixture.cleanUp)
    return fixture


@functools.cache
def _template():
    return started(_Template())


@functools.cache
def shared():
    """Return this test process's keystone, which no test stops; started when needed."""
    return started(Keystone())
