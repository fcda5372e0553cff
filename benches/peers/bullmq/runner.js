// runner.js submit COUNT seq | submit COUNT concurrent CALLERS | submit COUNT all BATCH
//           latency COUNT EVERY_MS | worker COUNT
'use strict';
const { setTimeout: sleep } = require('node:timers/promises');
const { Queue, Worker } = require('bullmq');
const { Redis } = require('ioredis');
const { version } = require('bullmq/package.json');
const { argument, endWithInput, nowNs, ready, say } = require('./harness');

const REPORT_EVERY_MS = 10;

const connection = () => new Redis(process.env.REDIS_URL, { maxRetriesPerRequest: null });

async function submit(queue, count, way, size) {
  const add = (number) => queue.add('noop', argument(number));
  if (way === 'seq') {
    for (let number = 0; number < count; number++) await add(number);
  } else if (way === 'concurrent') {
    await Promise.all(Array.from({ length: size }, async (_, caller) => {
      for (let number = caller; number < count; number += size) await add(number);
    }));
  } else if (way === 'all') {
    for (let from = 0; from < count; from += size) {
      const length = Math.min(size, count - from);
      const job = (_, i) => ({ name: 'noop', data: argument(from + i) });
      await queue.addBulk(Array.from({ length }, job));
    }
  } else {
    throw new Error(`bullmq submits seq, concurrent or all, not ${way}`);
  }
}

async function submitEach(queue, count, everyMs) {
  const begun = nowNs();
  for (let number = 0; number < count; number++) {
    const waitMs = everyMs * number - (nowNs() - begun) / 1e6;
    if (waitMs > 0) await sleep(waitMs);
    await queue.add('noop', argument(number, nowNs()));
  }
}

async function client(command, args) {
  const options = { removeOnComplete: true, removeOnFail: true };
  const queue = new Queue('bench', { connection: connection(), defaultJobOptions: options });
  await queue.waitUntilReady();
  await ready(version);
  endWithInput();
  const begun = nowNs();
  const [count, second, third] = args;
  if (command === 'submit') await submit(queue, Number(count), second, Number(third));
  else await submitEach(queue, Number(count), Number(second));
  await say(`done ${nowNs() - begun}`);
}

async function worker(tasks) {
  const seen = Buffer.alloc(tasks);
  const waits = [];
  let [count, first, last, told] = [0, 0, 0, 0];
  const noop = async ({ data }) => {
    const now = nowNs();
    if (data.sent_ns > 0) waits.push(now - data.sent_ns);
    seen[data.number] += 1;
    if (count === 0) first = now;
    last = now;
    count += 1;
  };
  await ready(version);
  const running = new Worker('bench', noop, {
    connection: connection(),
    concurrency: Number(process.env.IN_FLIGHT ?? 100),
    removeOnComplete: { count: 0 },
    removeOnFail: { count: 0 },
  });
  running.on('error', (error) => console.error(error));
  setInterval(() => {
    if (count === told) return;
    told = count;
    say(`ran ${count} ${first} ${last}`);
  }, REPORT_EVERY_MS);
  await endWithInput(async () => {
    await say(`waited ${waits.join(' ')}`);
    await say(`seen ${seen.toString('hex')}`);
  });
}

async function main([command, ...args]) {
  if (command === 'worker') await worker(Number(args[0]));
  else await client(command, args);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
