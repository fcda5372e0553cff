// The lines that a runner exchanges with the harness (see ../README.md), and the argument.
'use strict';
const readline = require('node:readline');

const TEXT = 'x'.repeat(161);
const lines = readline.createInterface({ input: process.stdin });
const heard = [];
let ended = false;
let wake = () => {};
lines.on('line', (line) => { heard.push(line); wake(); });
lines.on('close', () => { ended = true; wake(); });

const nowNs = () => Number(process.hrtime.bigint());

const argument = (number, sentNs = 0) => ({ number, sent_ns: sentNs, text: TEXT });

const say = (words) => new Promise((told) => process.stdout.write(`bench ${words}\n`, told));

// Reports that the runner is connected, and waits until the harness has read the clocks.
async function ready(version) {
  await say(`ready ${version}`);
  while (heard.length === 0 && !ended) await new Promise((resolve) => { wake = resolve; });
  if (heard.shift() !== 'go') process.exit(1);
}

// Ends the process, after `last`, when the harness closes our input or dies.
async function endWithInput(last = async () => {}) {
  process.stdout.on('error', () => process.exit(1));
  while (!ended) await new Promise((resolve) => { wake = resolve; });
  await last();
  process.exit(0);
}

module.exports = { argument, endWithInput, nowNs, ready, say };
