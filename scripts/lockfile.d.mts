/** The part of package-lock.json that is looked at. */
interface Lockfile {
  packages: Record<
    string,
    {
      version?: string
      resolved?: string
      dev?: boolean
      optionalDependencies?: Record<string, string>
      [more: string]: unknown
    }
  >
}

/** What would keep the file from working on another platform or with another mirror, as sentences. */
export function lockfileFaults(lock: Lockfile): string[]

/** Repairs the content in place. */
export function repairLockfile(lock: Lockfile): void
