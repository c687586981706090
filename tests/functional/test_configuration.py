# SPDX-License-Identifier: Apache-2.0
"""Configuration: safe defaults, and a sample file that matches the code."""

import pathlib
import subprocess
import sys

import fixtures
from oslo_policy import generator as policy_generator
from placement.conf import placement as their_options

from placement_rpc import conf as configuration
from placement_rpc.conf import placement
from placement_rpc.testing import fixtures as service_fixtures
from tests import base

_ETC = pathlib.Path(__file__).parents[2] / "etc/placement-rpc"


class SampleTest(base.TestCase):

    def test_the_sample_file_is_what_the_code_says(self):
        """Run ``make sample`` where it is not."""
        written = self.useFixture(fixtures.TempDir()).join("sample")
        # In a process of its own: it changes the defaults of options that libraries share.
        subprocess.run([sys.executable, "-W", "ignore", "-m", "oslo_config.generator",
                        "--config-file", str(_ETC / "config-generator.conf"),
                        "--output-file", written], check=True)
        self.assertEqual((_ETC / "placement-rpc.conf.sample").read_text(),
                         pathlib.Path(written).read_text())

    def test_the_sample_policy_is_what_the_code_says(self):
        """Run ``make sample`` where it is not."""
        written = self.useFixture(fixtures.TempDir()).join("policy")
        policy_generator.generate_sample([
            "--config-file", str(_ETC / "policy-generator.conf"), "--output-file", written])
        self.assertEqual((_ETC / "policy.yaml.sample").read_text(),
                         pathlib.Path(written).read_text())

    def test_the_sample_file_has_our_groups(self):
        text = (_ETC / "placement-rpc.conf.sample").read_text()
        for group in ("conductor", "claims", "placement_client", "standalone", "database",
                      "oslo_messaging_rabbit"):
            self.assertIn(f"\n[{group}]\n", text)
        self.assertIn("#rabbit_quorum_queue = true", text)


class PlacementsFileTest(base.TestCase):
    """Options that OpenStack Placement has too."""

    def conf(self, text):
        path = self.useFixture(fixtures.TempDir()).join("placement.conf")
        pathlib.Path(path).write_text(text)
        return configuration.new_config(config_files=[path])

    def test_names_and_defaults_are_its_own(self):
        ours = {option.name: option for option in placement.OPTS}
        theirs = {option.name: option for option in their_options.placement_opts}
        self.assertEqual(set(), set(ours) - set(theirs))
        for name in ("incomplete_consumer_project_id", "incomplete_consumer_user_id"):
            self.assertEqual(theirs[name].default, ours[name].default)

    def test_the_attempts_at_a_transaction(self):
        for text, attempts in (
                ("", 10), ("[claims]\nmax_attempts = 3", 3),
                ("[placement]\nallocation_conflict_retry_count = 0", 1),
                ("[placement]\nallocation_conflict_retry_count = 4\n[claims]\nmax_attempts = 3",
                 5)):
            self.assertEqual(attempts, placement.attempts(self.conf(text)), text)
        store = self.useFixture(service_fixtures.Store(
            placement__allocation_conflict_retry_count=7))
        self.assertEqual(8, store.database.max_attempts)

    def test_old_names_of_the_owner(self):
        for group in ("api", "placement"):
            conf = self.conf(f"[{group}]\nincomplete_consumer_project_id = nobodys\n"
                             f"incomplete_consumer_user_id = nobody\n")
            self.assertEqual("nobodys", conf.placement.incomplete_consumer_project_id)
            self.assertEqual("nobody", conf.placement.incomplete_consumer_user_id)


class DefaultsTest(base.TestCase):

    def test_queues_outlive_their_broker(self):
        rabbit = configuration.new_config(config_files=[]).oslo_messaging_rabbit
        self.assertTrue(rabbit.rabbit_quorum_queue)
        self.assertTrue(rabbit.amqp_durable_queues)
        self.assertGreater(rabbit.rabbit_qos_prefetch_count, 0)

    def test_a_file_has_the_last_word(self):
        path = self.useFixture(fixtures.TempDir()).join("placement-rpc.conf")
        pathlib.Path(path).write_text(
            "[oslo_messaging_rabbit]\nrabbit_quorum_queue = false\n[conductor]\nthreads = 7\n")
        conf = configuration.new_config(config_files=[path])
        self.assertFalse(conf.oslo_messaging_rabbit.rabbit_quorum_queue)
        self.assertEqual(7, conf.conductor.threads)

    def test_two_configurations_do_not_touch_each_other(self):
        one = configuration.new_config(config_files=[], conductor__threads=1)
        two = configuration.new_config(config_files=[])
        self.assertEqual((1, 32), (one.conductor.threads, two.conductor.threads))
