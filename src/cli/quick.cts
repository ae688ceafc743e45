/** Whoever starts these waits for the work behind them. The build has the list too (scripts/commonjs.mjs). */
const QUICK: readonly string[] = ['run', 'acquire', 'release', 'ls', 'inspect']

module.exports = QUICK
