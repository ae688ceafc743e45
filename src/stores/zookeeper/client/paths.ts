import { ZooKeeperError } from './errors.ts'

// What the server refuses inside a path: control characters, surrogates and private use, and non-characters.
// eslint-disable-next-line no-control-regex -- control characters are what this looks for
export const FORBIDDEN: RegExp = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/

/** Throws unless the server would take the path. `sequential`: the server appends a number, so it may end in a slash. */
export function checkPath(path: string, sequential = false): void {
  const problem = problemOf(sequential ? `${path}1` : path)
  if (problem !== undefined)
    throw new ZooKeeperError('BAD_ARGUMENTS', `Path ${JSON.stringify(path)} ${problem}`, { path })
}

function problemOf(path: string): string | undefined {
  if (path.charCodeAt(0) !== 47) return 'must begin with a slash'
  if (path.length === 1) return undefined
  if (path.endsWith('/')) return 'must not end with a slash'
  if (path.includes('//')) return 'has an empty part'
  if (FORBIDDEN.test(path)) return 'has a character that ZooKeeper does not allow'
  if (path.includes('/.') && path.split('/').some((part) => part === '.' || part === '..')) {
    return 'has a part that is "." or ".."'
  }
  return undefined
}

/** All paths of a client lie below its chroot; '' when it has none. */
export class Chroot {
  readonly root: string

  constructor(path: string) {
    const root = path === '/' ? '' : path
    if (root !== '') checkPath(root)
    this.root = root
  }

  /** The server's name for a path of the user's. */
  full(path: string): string {
    if (this.root === '') return path
    return path === '/' ? this.root : this.root + path
  }

  /** The user's name for a path of the server's. */
  local(path: string): string {
    if (this.root === '' || !path.startsWith(this.root)) return path
    const rest = path.slice(this.root.length)
    return rest === '' ? '/' : rest.startsWith('/') ? rest : path
  }
}

/** The path and what lies above it, from the top, without the root: `/a/b` → `/a`, `/a/b`. */
export function ancestry(path: string): string[] {
  const parts = path.split('/').slice(1)
  return path === '/' ? [] : parts.map((_, index) => `/${parts.slice(0, index + 1).join('/')}`)
}
