/** What is wrong with the imports of one source file, as sentences. `file` is relative to the repository. */
export function layerFaults(file: string, text: string): string[]

/** The faults of every TypeScript file below `root`/src. */
export function checkLayers(root: string): string[]
