# SPDX-License-Identifier: Apache-2.0
"""The options of the library that operators set: each is honoured, refused or without meaning."""

import pathlib

import testscenarios
from oslo_messaging._drivers import amqp, impl_rabbit

from placement_rpc import conf as configuration
from placement_rpc import exception
from placement_rpc.amqp import options, topology
from placement_rpc.amqp.broker import Broker
from tests import base

_OPERATOR_GUIDE = pathlib.Path(__file__).parents[2] / "docs/source/operator.rst"
_TABLES = (options.HONOURED, options.MEANINGLESS, options.REFUSED)


def _broker(url="rabbit://localhost/", **values):
    return Broker.of(configuration.new_config(
        config_files=[], transport_url=url,
        **{f"oslo_messaging_rabbit__{name}": value for name, value in values.items()}))


class TableTest(base.TestCase):

    def test_each_option_of_the_library_is_decided_once(self):
        """One that is new in a later version of the library has to be added to a table."""
        decided = [name for table in _TABLES for name in table]
        self.assertEqual(
            sorted(option.name for option in impl_rabbit.rabbit_opts + amqp.amqp_opts),
            sorted(decided))

    def test_the_operators_guide_has_them_all(self):
        text = " ".join(_OPERATOR_GUIDE.read_text().split())
        self.assertEqual([], [name for table in _TABLES for name, meaning in table.items()
                              if f"``{name}`` {meaning}" not in text])


class RefusalTest(testscenarios.WithScenarios, base.TestCase):

    scenarios = [(f"{name}={value}", {"name": name, "value": value, "others": others})
                 for name, value, others in (
        ("ssl_enforce_fips_mode", True, {}),
        ("rabbit_login_method", "RABBIT-CR-DEMO", {}),
        ("rabbit_ha_queues", True, {}),
        ("enable_cancel_on_failover", True, {}),
        ("enable_cancel_on_failover", True,
         {"rabbit_quorum_queue": False, "rabbit_transient_quorum_queue": True}),
        ("heartbeat_timeout_threshold", -1, {}),
        ("kombu_compression", "brotli", {}),
        ("ssl_version", "SSLv3", {"ssl": True}),
        ("ssl_version", "TLSv9", {"ssl": True}),
        ("ssl_ca_file", "/no/such/file", {"ssl": True}),
        ("ssl_cert_file", "/no/such/file", {"ssl": True}),
        ("ssl_key_file", "/no/such/file", {"ssl": True}))]

    def test_it_is_refused_by_name(self):
        error = self.assertRaises(
            exception.InvalidInput, _broker, **{self.name: self.value}, **self.others)
        self.assertIn(f"[oslo_messaging_rabbit] {self.name}", str(error))


class HonouredTest(base.TestCase):

    def test_nothing_is_refused_by_default(self):
        found = _broker()
        self.assertIsNone(found.tls)
        self.assertEqual(("localhost", 5672, "/"), (
            found.nodes[0].host, found.nodes[0].port, found.virtual_host))

    def test_without_tls_its_files_are_not_read(self):
        self.assertIsNone(_broker(ssl_ca_file="/no/such/file").tls)

    def test_the_query_of_the_url_has_the_last_word(self):
        found = _broker("rabbit://localhost/?heartbeat_timeout_threshold=7&rabbit_login_method="
                        "PLAIN", heartbeat_timeout_threshold=9)
        self.assertEqual((7, "PLAIN"), (found.options.heartbeat_timeout_threshold,
                                        found.options.rabbit_login_method))
        for query in ("no_such_option=1", "heartbeat_timeout_threshold=x"):
            error = self.assertRaises(
                exception.InvalidInput, _broker, f"rabbit://user:secret@localhost/?{query}")
            self.assertNotIn("secret", str(error))

    def test_pauses_are_no_longer_than_the_operator_says(self):
        backoff = _broker(rabbit_interval_max=1).backoff()
        self.assertLessEqual(max(backoff.next() for _ in range(20)), 1)
        backoff = _broker(rabbit_interval_max=30).backoff()
        self.assertGreater(max(backoff.next() for _ in range(20)), 10)

    def test_names_are_checked_unless_either_option_says_no(self):
        self.assertTrue(_broker(ssl=True).tls.checks_names)
        self.assertFalse(_broker(ssl=True, ssl_enforce_hostname_verification=False)
                         .tls.checks_names)
        conf = configuration.new_config(
            config_files=[], transport_url="rabbit://localhost/?ssl=true",
            broker__check_hostname=False)
        self.assertFalse(Broker.of(conf).tls.checks_names)

    def test_consumers_are_cancelled_on_a_failover(self):
        self.assertEqual({}, topology.consumer_arguments(_broker().options))
        self.assertEqual({"x-cancel-on-ha-failover": True}, topology.consumer_arguments(_broker(
            rabbit_quorum_queue=False, enable_cancel_on_failover=True).options))
