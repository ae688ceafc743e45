/** What is wrong with the imports of one source file, as sentences. `file` is relative to the repository. */
export function layerFaults(file: string, text: string): string[]

/** Where another file of the runtime than its own writes a field of a claim. */
export function writerFaults(file: string, text: string): string[]

/** The faults of every TypeScript file below `root`/src. */
export function checkLayers(root: string): string[]
