/**
 * A mutant of one edit that the random programs have to find. `seed` is the one that showed it last, if it is far from the first.
 * @param {string} id
 * @param {string} bugClass
 * @param {import('../kill-matrix.mjs').Edit} edit
 * @param {string} check
 * @param {number} seeds
 * @param {number} [seed]
 * @returns {import('../kill-matrix.mjs').Mutant}
 */
export const mutant = (id, bugClass, edit, check, seeds, seed) => ({
  id,
  bugClass,
  edits: [edit],
  scenario: 'programs',
  check,
  seeds,
  seed,
})
