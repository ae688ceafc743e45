/**
 * Runs something and says what it cost the server meanwhile.
 * @template T
 * @param {import('./stage.mjs').Stage} stage
 * @param {() => Promise<T>} body
 * @returns {Promise<[T, { ops: number, cpu: number }]>}
 */
export async function charged(stage, contestant, body) {
  const meter = stage.meter(contestant)
  const before = await meter.read()
  const result = await body()
  const after = await meter.read()
  return [result, { ops: after.ops - before.ops, cpu: after.cpu - before.cpu }]
}
