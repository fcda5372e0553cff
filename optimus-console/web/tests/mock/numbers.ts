// Numbers that look like chance and are the same in each run, so that screenshots are, too.

export function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A uuid of version 7 from a number. */
export function uuid(number: number): string {
  const hex = Math.imul(number + 1, 2_654_435_761) >>> 0;
  const tail = (hex.toString(16) + "c0ffee42d00d").padStart(20, "7").slice(0, 20);
  return `019aa${tail.slice(0, 3)}-${tail.slice(3, 7)}-7${tail.slice(7, 10)}-9${tail.slice(10, 13)}-${tail.slice(13).padEnd(12, "5")}`;
}
