// The whole idea in one command: `npm run demo`. The same as `holdfast demo`.
process.argv.splice(2, 0, 'demo')
await import('../dist/cli/main.js')
