# SPDX-License-Identifier: Apache-2.0
"""URLs of databases: which can be used, and whether the file of SQLite exists."""

import math
import pathlib
import urllib.parse

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from placement_rpc import exception

# Dict of the kind of database to the drivers that are supported, the recommended one first.
_DRIVERS = {"sqlite": ("pysqlite",), "postgresql": ("psycopg",), "mysql": ("pymysql", "mysqldb"),
            "mariadb": ("pymysql", "mysqldb")}

#: What drivers raise for parameters that they do not know, or that have wrong values.
PARAMETERS = (TypeError, ValueError, AttributeError, LookupError)


def parsed(text: str | None, what: str = "[database] connection") -> sa.URL:
    """Return a URL.

    :param what: where the text comes from, for the error
    :raises StoreUnavailable: if the text is not a URL of a database
    """
    try:
        return make_url(text or "")
    except (sa.exc.ArgumentError, ValueError) as error:
        problem = "an SQLAlchemy URL" if text else "set"
        raise exception.StoreUnavailable(reason=f"{what} is not {problem}") from error


def of_sqlite(path: str | pathlib.Path) -> str:
    """Return the URL of an SQLite file; its path may contain any characters."""
    return sa.URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)


def without_passwords(text: str, what: str = "[database] connection") -> str:
    """Return a URL to be shown: passwords are replaced, those among its parameters too.

    Arguments and errors are those of :func:`parsed`.
    """
    url = parsed(text, what)
    # Drivers know several parameters for passwords, of users and of keys.
    return url.update_query_dict({
        name: "***" for name in url.query if "pass" in name.lower()
    }).render_as_string(hide_password=True)


def check_driver(url: sa.URL) -> None:
    """Check that the service supports the database and the driver of a URL, and can load it.

    :raises StoreUnavailable: if it does not; the error says what to write instead
    """
    kind = url.get_backend_name()
    if kind not in _DRIVERS:
        raise exception.StoreUnavailable(
            reason=f"databases of the kind {kind!r} are not supported; there are "
                   f"{', '.join(sorted(_DRIVERS))}")
    recommended, *_ = _DRIVERS[kind]
    try:
        driver = url.get_driver_name()
    except sa.exc.NoSuchModuleError:
        driver = url.drivername.partition("+")[2]
    if driver not in _DRIVERS[kind]:
        raise exception.StoreUnavailable(
            reason=f"the driver {driver} is not supported; write {kind}+{recommended}://")
    try:
        url.get_dialect().import_dbapi()
    except ImportError as error:
        other = "" if driver == recommended else f", or write {kind}+{recommended}://"
        raise exception.StoreUnavailable(
            reason=f"the driver {driver} is not installed ({' '.join(str(error).split())[:200]}); "
                   f"install it{other}") from None


def with_limits(url: sa.URL, answer_timeout: float) -> sa.URL:
    """Return the URL with which a driver gives up a server that does not answer.

    The limits are part of the URL, since oslo.db opens its first connection before listeners can
    be added. What the URL says itself has priority.

    :param answer_timeout: seconds; in as many, all PostgreSQL servers of the URL are tried until
        one of them is the primary
    """
    limits = {"postgresql": _limits_of_libpq, "mysql": _limits_of_mysql,
              "mariadb": _limits_of_mysql}.get(url.get_backend_name())
    added = limits(url, answer_timeout) if limits else {}
    return url.update_query_dict({
        name: str(value) for name, value in added.items() if name not in url.query})


def _limits_of_libpq(url, answer_timeout):
    hosts = url.query.get("host", ())
    number = len(hosts) if isinstance(hosts, tuple) else hosts.count(",") + 1
    # libpq waits for two seconds at least.
    limits = {"connect_timeout": max(2, math.ceil(answer_timeout / max(1, number)))}
    return limits | ({"target_session_attrs": "read-write"} if number > 1 else {})


def _limits_of_mysql(_url, answer_timeout):
    # The driver would wait for ever for a server that is frozen, since its machine acknowledges
    # all that it receives. PyMySQL asks the server first: see long_statements.
    return dict.fromkeys(("read_timeout", "write_timeout"), math.ceil(answer_timeout))


def file_of(url: sa.URL) -> pathlib.Path | None:
    """Return the file of a SQLite database; None for one in memory and for other databases."""
    name = url.database
    if url.get_backend_name() != "sqlite" or not name:
        return None
    if name.startswith("file:"):
        name = urllib.parse.unquote(urllib.parse.urlsplit(name).path)
    if not name or name == ":memory:" or url.query.get("mode") == "memory":
        return None
    return pathlib.Path(name)


def refused(error: Exception) -> exception.StoreUnavailable:
    """Return the error for an exception of :data:`PARAMETERS`."""
    return exception.StoreUnavailable(
        reason="the driver does not accept the parameters of the URL "
               f"({' '.join(str(error).split())[:200]})")


def check_file(url: sa.URL, remedy: str = "") -> None:
    """Check that a SQLite database exists: opening it would create an empty one.

    :param remedy: added to the text of the error, such as the command that makes the file
    :raises StoreUnavailable: if it does not
    """
    path = file_of(url)
    if path is not None and not path.exists():
        raise exception.StoreUnavailable(reason=f"there is no file {path}{remedy}")
