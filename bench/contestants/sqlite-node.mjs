// SQLite comes with Node from 22.13 on. Where the benchmark itself runs on an older one, BENCH_SQLITE_NODE names the
// program that runs whoever works with SQLite.
const here = process.getBuiltinModule?.('node:sqlite') !== undefined
const other = process.env.BENCH_SQLITE_NODE

export const sqliteNode = here
  ? {}
  : other === undefined
    ? { missing: `Node ${process.versions.node} has no SQLite; BENCH_SQLITE_NODE can name one that has` }
    : { execPath: other }
