/** A folder of server-side scripts and the TypeScript module made of it. */
interface ScriptFolder {
  readonly dir: string
  readonly ext: string
  readonly out: string
  readonly syntax: { readonly comment: string; readonly header: readonly string[] }
}

/** The modules written, or with `check` the modules that are stale. Throws when a script lacks its header. */
export function gen(options: { root: string; check: boolean; folders?: readonly ScriptFolder[] }): string[]
