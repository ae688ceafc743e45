// Made by scripts/gen.mjs from src/stores/sqlite/sql/*.sql. Edit those, then: npm run gen

export interface Script {
  readonly sha1: string
  readonly sql: string
}

export interface Scripts {
}

export const scripts: Scripts = {
}
