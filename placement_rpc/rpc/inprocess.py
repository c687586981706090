# SPDX-License-Identifier: Apache-2.0
"""The bus inside one process: an oslo.messaging driver for ``inprocess://name/``.

The embedded default needs a bus that needs no broker. The library's own ``fake://`` is made
for unit tests: it looks for messages every 50 ms and passes errors by reference. Here a
listener is woken, and everything travels as JSON text, as it does on a real bus. Nothing
outlives the process.
"""

import collections
import functools
import queue
import threading
import time

import oslo_messaging
from oslo_messaging._drivers import base, common
from oslo_serialization import jsonutils

# Messages without a listener are dropped from the oldest on, beyond so many.
_MAX_UNREAD = 10_000


class _Queues:
    """The queues of one bus, and the condition under which they are waited on."""

    def __init__(self):
        self.condition = threading.Condition()
        self.queues = {}

    def open(self, keys):
        with self.condition:
            for key in keys:
                self.queues.setdefault(key, collections.deque(maxlen=_MAX_UNREAD))

    def put(self, key, message):
        """:returns: bool, whether there is such a queue"""
        with self.condition:
            if key not in self.queues:
                return False
            self.queues[key].append(message)
            self.condition.notify_all()
        return True

    def take(self, keys):
        """The next message of any of the queues; the caller holds the condition."""
        for key in keys:
            waiting = self.queues[key]
            while waiting:
                message = waiting.popleft()
                if message.expires is None or message.expires > time.monotonic():
                    return message
        return None


# Both ends of an in-process bus meet by its address.
_buses = collections.defaultdict(_Queues)


class _Message:
    """A message in a queue: JSON text, where to answer, and until when it is wanted."""

    def __init__(self, context, body, answers=None, timeout=None):
        self.context = jsonutils.dumps(context)
        self.body = jsonutils.dumps(body)
        self.answers = answers
        self.expires = None if timeout is None else time.monotonic() + timeout


class _Incoming(base.RpcIncomingMessage):
    """A message as a server sees it."""

    def __init__(self, message, requeue):
        super().__init__(jsonutils.loads(message.context), jsonutils.loads(message.body))
        self._answers = message.answers
        self._requeue = requeue

    def reply(self, reply=None, failure=None):
        if self._answers is None:
            return
        if failure:
            self._answers.put((common.serialize_remote_exception(failure), None))
        else:
            self._answers.put((None, jsonutils.dumps(reply)))

    def requeue(self):
        self._requeue()

    def heartbeat(self):
        """A caller in the same process sees for itself that the process is alive."""


class _Listener(base.PollStyleListener):
    """Takes messages off several queues."""

    def __init__(self, queues, keys):
        super().__init__()
        self._queues = queues
        self._keys = keys
        self._stopped = False
        queues.open(keys)

    @base.batch_poll_helper
    def poll(self, timeout=None):
        until = None if timeout is None else time.monotonic() + timeout
        with self._queues.condition:
            while not self._stopped:
                message = self._queues.take(self._keys)
                if message is not None:
                    return _Incoming(
                        message, functools.partial(self._queues.put, self._keys[0], message))
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    return None
                self._queues.condition.wait(left)
        return None

    def stop(self):
        with self._queues.condition:
            self._stopped = True
            self._queues.condition.notify_all()


class InProcessDriver(base.BaseDriver):
    """An oslo.messaging driver whose bus is this process."""

    def __init__(self, conf, url, default_exchange=None, allowed_remote_exmods=None):
        super().__init__(conf, url, default_exchange, allowed_remote_exmods)
        self._queues = _buses[str(url)]

    def _key(self, target, suffix=None):
        name = f"{target.topic}.{suffix}" if suffix else target.topic
        return target.exchange or self._default_exchange, name

    def require_features(self, requeue=False):
        """Requeueing is supported, and there is nothing else to require."""

    def send(self, target, ctxt, message, wait_for_reply=None, timeout=None,
             call_monitor_timeout=None, retry=None, transport_options=None):
        answers = queue.SimpleQueue() if wait_for_reply else None
        sent = self._send(target, _Message(ctxt, message, answers, timeout))
        if not sent and getattr(transport_options, "at_least_once", False):
            raise oslo_messaging.MessageUndeliverable(
                None, self._key(target)[0], target.topic, message)
        if not wait_for_reply:
            return None
        try:
            failure, reply = answers.get(timeout=timeout)
        except queue.Empty:
            raise oslo_messaging.MessagingTimeout(
                f"No answer on topic {target.topic}") from None
        if failure:
            raise common.deserialize_remote_exception(failure, self._allowed_remote_exmods)
        return jsonutils.loads(reply)

    def _send(self, target, message):
        if target.fanout:
            exchange, topic = self._key(target, "fanout")
            with self._queues.condition:
                keys = [key for key in self._queues.queues
                        if key[0] == exchange and key[1].startswith(f"{topic}.")]
                sent = [self._queues.put(key, message) for key in keys]
            return any(sent)
        return self._queues.put(self._key(target, target.server), message)

    def send_notification(self, target, ctxt, message, version, retry=None):
        key = self._key(target)
        self._queues.open([key])
        self._queues.put(key, _Message(ctxt, message))

    def listen(self, target, batch_size, batch_timeout):
        keys = [self._key(target), self._key(target, target.server),
                self._key(target, f"fanout.{target.server}")]
        return base.PollStyleListenerAdapter(
            _Listener(self._queues, keys), batch_size, batch_timeout)

    def listen_for_notifications(self, targets_and_priorities, pool, batch_size, batch_timeout):
        keys = [self._key(target, priority) for target, priority in targets_and_priorities]
        return base.PollStyleListenerAdapter(
            _Listener(self._queues, keys), batch_size, batch_timeout)

    def cleanup(self):
        """Nothing to close: the queues are there as long as the process is."""
