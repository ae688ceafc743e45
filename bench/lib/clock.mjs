// The monotonic clock, in milliseconds, comparable between the processes of one machine.
const READINGS = 50

/** `performance.now()` counts from the start of its process; this is what to add to compare it with another's. */
export const CLOCK_OFFSET = offset()

function offset() {
  let best = { width: Infinity, offset: 0 }
  for (let reading = 0; reading < READINGS; reading++) {
    const before = performance.now()
    const common = Number(process.hrtime.bigint()) / 1e6
    const after = performance.now()
    if (after - before < best.width) best = { width: after - before, offset: common - (before + after) / 2 }
  }
  return best.offset
}

export const monotonic = () => performance.now() + CLOCK_OFFSET

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export const breathe = () => new Promise((resolve) => setImmediate(resolve))

/** Resolves at a moment of the common clock, as exactly as a timer and some turns of the loop allow. */
export async function at(moment) {
  const ahead = moment - monotonic()
  if (ahead > 2) await sleep(ahead - 2)
  while (monotonic() < moment) await breathe()
}

/** Whether a promise resolves within that time. */
export async function within(ms, promise) {
  let timer
  const late = new Promise((resolve) => (timer = setTimeout(resolve, ms, false)))
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
