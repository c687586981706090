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
