# SPDX-License-Identifier: Apache-2.0
"""Addresses of brokers: any password works, and none is shown."""

import requests
import testscenarios

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.amqp.broker import Broker, Node
from placement_rpc.service import broker_check
from tests import base


def _broker(url):
    return Broker.of(configuration.new_config(config_files=[], transport_url=url))


class AddressTest(base.TestCase):

    def test_special_characters_are_percent_encoded(self):
        found = _broker("rabbit://us%2Fer:p%2Fa%40s%3As%25w%2Co%23r%3Fd%3B+@h/a%2Fb%40c")
        self.assertEqual((Node("h", 5672, "us/er", "p/a@s:s%w,o#r?d;+"),), found.nodes)
        self.assertEqual("a/b@c", found.virtual_host)

    def test_nodes_and_defaults(self):
        self.assertEqual((Node("localhost", 5672, "guest", "guest"),), _broker("rabbit://").nodes)
        found = _broker("rabbit://u:p@one:1,u:p@[::1]:2/")
        self.assertEqual(("one:1", "[::1]:2"), tuple(each.address for each in found.nodes))
        self.assertEqual("/", found.virtual_host)

    def test_a_url_alone(self):
        found = Broker.at("rabbit://user:pa%2Fss@host:1/v?rabbit_login_method=PLAIN")
        self.assertEqual((Node("host", 1, "user", "pa/ss"),), found.nodes)
        self.assertEqual("PLAIN", found.options.rabbit_login_method)
        self.assertIs(found, Broker.at(found))
        self.assertRaises(exception.InvalidInput, Broker.at, "inprocess://x/")

    def test_what_is_printed_has_no_password(self):
        found = _broker("rabbit://user:secret@host/?ssl=true")
        for text in (repr(found), str(found), repr(found.nodes), f"{found.nodes[0]}"):
            self.assertNotIn("secret", text)


class MalformedTest(testscenarios.WithScenarios, base.TestCase):
    """A password whose special characters are not percent-encoded cuts the URL apart."""

    scenarios = [(password, {"password": password}) for password in (
        "se/cret", "1/secret", "1/se@cret", "se?cret", "1?secret", "se#cret", "1#secret",
        "se[cret", "[secret]", "1,secret", "1,secret:x", "se,cret:x", "1:secret", "/secret")]

    def test_the_error_shows_no_part_of_it(self):
        url = f"rabbit://user:{self.password}@host:5672/"
        try:
            found = _broker(url)
        except exception.InvalidInput as error:
            self.assertNotIn("secret", str(error))
            self.assertNotIn("cret", str(error))
            self.assertIsNone(error.__cause__)
            self.assertTrue(error.__suppress_context__)
        else:
            self.assertEqual((self.password, "host"), (
                found.nodes[0].password, found.nodes[0].host))
        self.assertNotIn("cret", self.log.output)

    def test_nor_does_that_of_a_management_url(self):
        def get(url, **_how):
            raise requests.ConnectionError(url)

        self.patch(broker_check.requests, "get", get)
        try:
            broker_check.Management(f"http://user:{self.password}@127.0.0.1:9", "/").get("queues")
        except (exception.InvalidInput, exception.ServiceUnavailable) as error:
            self.assertNotIn("cret", str(error))
