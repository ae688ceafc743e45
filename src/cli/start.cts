#!/usr/bin/env node
// The command as it is published. Most of what starting it costs is the loading of files, one by one: what scripts start again and
// again comes from the package's CommonJS form, where there are few (scripts/commonjs.mjs makes them of the same
// sources). A bundle of modules was no faster, and the library would have been there once more.
//
// Loaded in whatever way, it starts: a process manager (pm2) imports it, and then it is not `require.main`.
const QUICK = require('./quick.cjs') as readonly string[]

if (QUICK.includes(process.argv[2] ?? '')) {
  require('../commonjs/command.cjs')
} else {
  import('./main.ts').catch((error: unknown) => {
    console.error(error)
    process.exit(70)
  })
}
