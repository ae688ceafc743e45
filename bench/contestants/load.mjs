/** One entry of one file, without loading the other libraries. */
export async function loadContestant(file, id) {
  const exported = Object.values(await import(`./${file}`))
  return exported.flat().find((entry) => entry.id === id)
}
