# SPDX-License-Identifier: Apache-2.0
"""URLs of databases as they are shown."""

from placement_rpc import exception
from placement_rpc.db import urls
from tests import base


class WithoutPasswordsTest(base.TestCase):

    def test_no_password_is_shown(self):
        for given, shown in (
                ("mysql+pymysql://u:secret@h/db?charset=utf8", "u:***@h/db?charset=utf8"),
                ("mysql+pymysql://u@h/db?charset=utf8&password=secret",
                 "u@h/db?charset=utf8&password=***"),
                ("mysql+pymysql://u@h/db?passwd=secret", "u@h/db?passwd=***"),
                ("postgresql://u@h/db?sslpassword=secret&password=secret",
                 "u@h/db?password=***&sslpassword=***")):
            found = urls.without_passwords(given)
            self.assertNotIn("secret", found)
            self.assertEqual(given.partition("://")[0] + "://" + shown,
                             found.replace("%2A", "*"))

    def test_no_url(self):
        error = self.assertRaises(exception.StoreUnavailable, urls.without_passwords, "secret")
        self.assertNotIn("secret", str(error))


class WithLimitsTest(base.TestCase):

    def query(self, text):
        return dict(urls.with_limits(urls.parsed(text), 9.5).query)

    def test_one_server(self):
        for text in ("postgresql+psycopg://u@h/db", "postgresql+psycopg://u@/db?host=h"):
            found = self.query(text)
            self.assertEqual("10", found.pop("connect_timeout"))
            self.assertNotIn("target_session_attrs", found)

    def test_several_servers_are_tried_until_one_is_the_primary(self):
        for text in ("postgresql+psycopg://u@/db?host=a&host=b&host=c",
                     "postgresql+psycopg://u@/db?host=a,b,c"):
            found = self.query(text)
            self.assertEqual(("4", "read-write"),
                             (found["connect_timeout"], found["target_session_attrs"]))

    def test_mariadb(self):
        self.assertEqual({"read_timeout": "10", "write_timeout": "10"},
                         self.query("mysql+pymysql://u@h/db"))

    def test_the_url_has_priority(self):
        found = self.query("postgresql+psycopg://u@/db?host=a&host=b&connect_timeout=2"
                           "&target_session_attrs=any")
        self.assertEqual(("2", "any"), (found["connect_timeout"], found["target_session_attrs"]))
        self.assertEqual("60", self.query("mysql+pymysql://u@h/db?read_timeout=60")["read_timeout"])

    def test_other_databases(self):
        self.assertEqual({}, self.query("sqlite:///placement.db"))
