"""runner.py submit COUNT seq | submit COUNT concurrent CALLERS
             latency COUNT EVERY_MS | worker COUNT"""

import asyncio
import json
import os
import sys
import time

from arq import Worker, create_pool
from arq.connections import RedisSettings
from arq.version import VERSION
from arq.worker import func

from harness import Tally, argument, end_with_input, ready, say

# The library reads the text after the last slash as the number of a database.
REDIS = RedisSettings.from_dsn(os.environ["REDIS_URL"].rstrip("/"))
FORMAT = {
    "job_serializer": lambda job: json.dumps(job, default=str).encode(),
    "job_deserializer": json.loads,
}


async def submit(pool, count, way, callers):
    async def caller(numbers):
        for number in numbers:
            await pool.enqueue_job("noop", argument(number))

    if way == "seq":
        await caller(range(count))
    elif way == "concurrent":
        await asyncio.gather(*(caller(range(i, count, callers)) for i in range(callers)))
    else:
        sys.exit(f"arq submits seq or concurrent, not {way}")


async def submit_each(pool, count, every_ms):
    begun = time.monotonic_ns()
    for number in range(count):
        wait_ns = begun + number * every_ms * 1_000_000 - time.monotonic_ns()
        if wait_ns > 0:
            await asyncio.sleep(wait_ns / 1e9)
        await pool.enqueue_job("noop", argument(number, time.monotonic_ns()))


async def client(command, count, rest):
    pool = await create_pool(REDIS, job_serializer=FORMAT["job_serializer"])
    ready(VERSION)
    end_with_input()
    begun = time.monotonic_ns()
    if command == "submit":
        await submit(pool, count, rest[0], int(rest[1]) if len(rest) > 1 else 0)
    else:
        await submit_each(pool, count, int(rest[0]))
    say(f"done {time.monotonic_ns() - begun}")
    await asyncio.Event().wait()


async def work(count):
    tally = Tally(count)

    async def noop(_, argument):
        tally.ran(argument)

    ready(VERSION)
    tally.start()
    worker = Worker(
        functions=[func(noop, name="noop")],
        redis_settings=REDIS,
        max_jobs=int(os.environ.get("IN_FLIGHT", "10")),
        poll_delay=int(os.environ.get("POLL_MS", "500")) / 1000,
        keep_result=0,
        handle_signals=False,
        **FORMAT,
    )
    await worker.main()


command, count, *rest = sys.argv[1:]
if command == "worker":
    asyncio.run(work(int(count)))
else:
    asyncio.run(client(command, int(count), rest))
