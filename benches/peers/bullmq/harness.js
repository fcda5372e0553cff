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

// Tells that all is connected, and waits until the harness has looked at the clocks.
async function ready(version) {
  await say(`ready ${version}`);
  while (heard.length === 0 && !ended) await new Promise((resolve) => { wake = resolve; });
  if (heard.shift() !== 'go') process.exit(1);
}

// Ends the process, after `last`, once the harness needs it no more: it closes our input, or died.
async function endWithInput(last = async () => {}) {
  process.stdout.on('error', () => process.exit(1));
  while (!ended) await new Promise((resolve) => { wake = resolve; });
  await last();
  process.exit(0);
}

module.exports = { argument, endWithInput, nowNs, ready, say };
