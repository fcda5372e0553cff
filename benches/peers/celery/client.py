"""Submits: client.py submit COUNT seq | submit COUNT all BATCH | latency COUNT EVERY_MS"""

import sys
import threading
import time

import celery

from harness import argument, end_with_input, ready, say
from task import app, noop


def submit(count, way, batch):
    if way == "seq":
        for number in range(count):
            noop.delay(argument(number))
    elif way == "all":
        # A group over one producer is the way to submit many tasks at once with this library.
        with app.producer_pool.acquire(block=True) as producer:
            for begin in range(0, count, batch):
                numbers = range(begin, min(count, begin + batch))
                tasks = (noop.s(argument(number)) for number in numbers)
                celery.group(tasks).apply_async(producer=producer)
    else:
        sys.exit(f"celery submits seq or all, not {way}")


def submit_each(count, every_ms):
    begun = time.monotonic_ns()
    for number in range(count):
        wait_ns = begun + number * every_ms * 1_000_000 - time.monotonic_ns()
        if wait_ns > 0:
            time.sleep(wait_ns / 1e9)
        noop.delay(argument(number, time.monotonic_ns()))


command, count, *rest = sys.argv[1:]
with app.connection_for_write() as connection:
    connection.ensure_connection()
ready(celery.__version__)
end_with_input()
begun = time.monotonic_ns()
if command == "submit":
    submit(int(count), rest[0], int(rest[1]) if len(rest) > 1 else 0)
else:
    submit_each(int(count), int(rest[0]))
say(f"done {time.monotonic_ns() - begun}")
threading.Event().wait()
