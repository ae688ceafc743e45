// SQLite comes with Node from 22.13 on. Where the benchmark itself runs on an older one, whoever works with SQLite runs on a newer:
// the program that BENCH_SQLITE_NODE names, or one that is fetched.
const here = process.getBuiltinModule?.('node:sqlite') !== undefined
const other = process.env.BENCH_SQLITE_NODE

export const sqliteNode = here ? {} : other === undefined ? { node: '22' } : { execPath: other }
