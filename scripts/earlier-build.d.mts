/** The build of an earlier commit, unpacked into a folder of its own. */
export function earlierBuild(): {
  /** The folder with its modules, as `dist` of the present one. */
  readonly dist: string
  readonly remove: () => void
}
