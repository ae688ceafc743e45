/** What is wrong with the imports of one source file, as sentences. `file` is relative to the repository. */
export function layerFaults(file: string, text: string): string[]

/** What is wrong with the name of a file in a store's folder. */
export function nameFaults(file: string): string[]

/** Where another file of the runtime than its own writes a field of a claim. */
export function writerFaults(file: string, text: string): string[]

/** The faults of every TypeScript file below `root`/src. */
export function checkLayers(root: string): string[]
