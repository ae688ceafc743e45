/** More than this takes no longer to warm up, as far as the rates of rounds tell; some databases never come so far. */
const MOST_MS = 4000
const SLICE_MS = 500

/**
 * Runs something until its code is compiled: for `warmUp` milliseconds, and on until it has done `warmSections` of them.
 * A library of many small functions needs thousands of sections for that, one line of a driver's needs hundreds; what is
 * measured is how they run in a process that has been up for a minute.
 * @param {{ warmUp: number, warmSections?: number, warmUpMost?: number }} plan
 * @param {(ms: number) => Promise<{ done: number }>} run
 */
export async function warmUp({ warmUp: ms, warmSections = 0, warmUpMost = MOST_MS }, run) {
  const began = performance.now()
  let { done } = await run(ms)
  while (done < warmSections && performance.now() - began < warmUpMost) done += (await run(SLICE_MS)).done
}
