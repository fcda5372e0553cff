"""The task and the application of Celery: `celery -A task worker` loads it."""

import os

import celery
from celery.signals import worker_init

from harness import Tally, ready

app = celery.Celery("bench", broker=os.environ["REDIS_URL"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    worker_disable_rate_limits=True,
    worker_prefetch_multiplier=int(os.environ.get("PREFETCH", "4")),
)
tally = Tally(int(os.environ.get("COUNT", "0")))


@app.task(ignore_result=True)
def noop(argument):
    tally.ran(argument)


@worker_init.connect
def start(**_):
    ready(celery.__version__)
    tally.start()
