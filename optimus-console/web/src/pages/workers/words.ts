// What is wrong with a process, in a sentence.

export const LATE =
  "Its handler goes on after its timeout, and keeps a slot until it returns or the process restarts. One that blocks its thread can't be stopped.";

export const BLOCKED =
  "Its handlers block all threads of their runtime, so it starts no task: let them await, or make them plain fns.";
