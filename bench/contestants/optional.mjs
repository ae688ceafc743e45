/**
 * A peer that is not installed everywhere takes part where it is, and is named as missing where it is not.
 * The package's name comes in as a value: tools that look for undeclared imports are right to find none.
 */
export async function optional(name, reason) {
  try {
    return { module: await import(name), missing: undefined }
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
    return { module: undefined, missing: `not installed: ${reason}` }
  }
}
