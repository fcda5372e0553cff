"""Code that the Python runners share: the argument, the tally of executions, and the lines that
they exchange with the harness (see ../README.md)."""

import os
import sys
import threading
import time

TEXT = "x" * 161
REPORT_EVERY_S = 0.01


def argument(number, sent_ns=0):
    return {"number": number, "sent_ns": sent_ns, "text": TEXT}


def say(words):
    # Celery turns `sys.stdout` into its log.
    sys.__stdout__.write(f"bench {words}\n")
    sys.__stdout__.flush()


def ready(version):
    """Reports that the runner has started, and waits until the harness has read the clocks."""
    say(f"ready {version}")
    if sys.stdin.readline() != "go\n":
        os._exit(1)


def end_with_input(last=lambda: None):
    """Ends the process, after `last`, when the harness closes our input or dies."""

    def wait():
        try:
            sys.stdin.readline()
            last()
        finally:
            os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


class Tally:
    """Counts the executions of the tasks `0..count`."""

    def __init__(self, count):
        self.seen = bytearray(count)
        self.waits = []
        self.count = self.first = self.last = 0

    def ran(self, argument):
        """The first line of the handler. All executions of a worker are in one thread."""
        now = time.monotonic_ns()
        if argument["sent_ns"] > 0:
            self.waits.append(now - argument["sent_ns"])
        self.seen[argument["number"]] += 1
        if self.count == 0:
            self.first = now
        self.last = now
        self.count += 1

    def start(self):
        """Reports executions as they happen. Ends the process when the harness no longer needs it."""
        threading.Thread(target=self._report, daemon=True).start()
        end_with_input(self._answer)

    def _report(self):
        told = 0
        while True:
            time.sleep(REPORT_EVERY_S)
            if self.count != told:
                told = self.count
                say(f"ran {told} {self.first} {self.last}")

    def _answer(self):
        say(f"waited {' '.join(map(str, self.waits))}")
        say(f"seen {self.seen.hex()}")
