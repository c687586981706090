# SPDX-License-Identifier: Apache-2.0
"""``placement-rpc-manage dead-letters``: calls, casts and events that could not be handled."""

import datetime
import json
import sys

import rich.console
import rich.progress

from placement_rpc import bodies, exception
from placement_rpc.amqp.dead_letters import DeadLetters
from placement_rpc.cmd import bus, output
from placement_rpc.notifications import envelope
from placement_rpc.rpc import command_queue


def _dead_letters(conf):
    broker = bus.needed(conf, "only RabbitMQ has dead letters")
    return DeadLetters(broker, command_queue.dead_letter_queue(conf.queues))


def _row(letter):
    return {"id": letter.id, "queue": letter.queue, "what": _subject(letter.body),
            "died_at": datetime.datetime.fromtimestamp(
                letter.died_at, datetime.UTC).isoformat() if letter.died_at else None,
            "reason": letter.reason}


def _subject(body):
    """Return the method or event type of a message; None if this service did not send it."""
    try:
        message = bodies.parsed(body, bodies.ANSWERS)
        if isinstance(message, dict) and "method" in message:
            return str(message["method"])
        return str(envelope.opened(body)["event_type"])
    except (ValueError, RecursionError):
        return None


def list_letters(options, conf):
    rows = [_row(letter) for letter in _dead_letters(conf).all()
            if options.queue in (None, letter.queue)]
    output.show(rows, ["id", "queue", "what", "died_at", "reason"], options.format,
                empty="There are no dead letters.")
    return 0


def show(options, conf):
    for letter in _dead_letters(conf).all():
        if letter.id in options.ids:
            try:
                body = bodies.parsed(letter.body, bodies.ANSWERS)
            except ValueError:
                body = letter.body
            json.dump({**_row(letter), "size": letter.size, "truncated": letter.truncated,
                       "header": letter.header, "body": body}, sys.stdout, indent=2)
            print()
            return 0
    raise exception.InvalidInput(
        what="dead letter", reason=f"{options.ids[0]} does not exist; list them with "
                                   "'placement-rpc-manage dead-letters list'")


def _wanted(options):
    if not (options.ids or options.all or options.queue):
        raise exception.InvalidInput(
            what="dead letters", reason="give their ids, --queue or --all")
    if options.all and (options.ids or options.queue):
        raise exception.InvalidInput(
            what="dead letters", reason="--all is for every one of them; with ids or --queue, "
                                        "leave it out")
    named = set(options.ids)
    return lambda letter: options.queue in (None, letter.queue) and (
        not named or letter.id in named)


def _progress(letters):
    return rich.progress.track(
        letters, "Dead letters", transient=True, disable=not sys.stderr.isatty(),
        console=rich.console.Console(stderr=True))


def _check_unambiguous(options, dead_letters):
    """Check that each id means one dead letter: several listeners may have rejected an event.

    :raises InvalidInput: if an id occurs in several queues and ``--queue`` is not given
    """
    queues = {}
    for letter in dead_letters.all():
        queues.setdefault(letter.id, set()).add(letter.queue)
    for each in options.ids:
        if len(queues.get(each, ())) > 1 and not options.queue:
            raise exception.InvalidInput(
                what="dead letter", reason=f"{each} was in several queues: give --queue, "
                                           f"one of {', '.join(sorted(queues[each]))}")


def replay(options, conf):
    wanted, dead_letters = _wanted(options), _dead_letters(conf)
    _check_unambiguous(options, dead_letters)
    return _report(options, *dead_letters.replay(wanted, _progress), "sent again")


def discard(options, conf):
    wanted, dead_letters = _wanted(options), _dead_letters(conf)
    _check_unambiguous(options, dead_letters)
    return _report(options, *dead_letters.discard(wanted, _progress), "removed")


def _report(options, done, left, word):
    """Print the result; return the exit code, 1 if a dead letter is missing or remains."""
    print(f"{len(done)} dead letters were {word}")
    missing = set(options.ids) - {letter.id for letter in [*done, *left]}
    for letter in left:
        reason = ("only an excerpt of it is kept" if letter.truncated
                  else f"queue {letter.queue!r} did not accept it")
        print(f"placement-rpc-manage: {letter.id} remains: {reason}", file=sys.stderr)
    for each in sorted(missing):
        print(f"placement-rpc-manage: there is no dead letter {each}", file=sys.stderr)
    return 1 if missing or left else 0
