#!/usr/bin/env node
// The command as it is published. Most of what starting it costs is the loading of files, one by one: what scripts start again and
// again comes from the package's CommonJS form, where there are few (scripts/commonjs.mjs makes them of the same
// sources). A bundle of modules was no faster, and the library would have been there once more.

/** Whoever starts these waits for the work behind them. */
const QUICK: readonly string[] = ['run', 'acquire', 'release', 'ls', 'inspect']

if (require.main !== module) {
  // The build asks for the list.
} else if (QUICK.includes(process.argv[2] ?? '')) {
  require('../commonjs/command.cjs')
} else {
  import('./main.ts').catch((error: unknown) => {
    console.error(error)
    process.exit(70)
  })
}

module.exports = QUICK
