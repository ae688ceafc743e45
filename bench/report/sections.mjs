import { growthTables } from './growth.mjs'
import { tableOf, titleOf } from './table.mjs'

/**
 * All tables of a run in order, the same on the terminal, on the page and in the docs.
 * @returns {{ key: string, title: string, about?: string, table: any }[]} `key`: workload, store, and variant or series
 */
export function sectionsOf({ results }) {
  const shown = results.filter(({ rows }) => rows.length > 0)
  const grown = shown.filter(({ series }) => series !== undefined)
  const plain = shown
    .filter(({ series }) => series === undefined)
    .map((result) => ({
      key: `${result.workload} ${result.store} ${result.variant}`,
      title: titleOf(result),
      about: result.about,
      table: tableOf(result),
    }))
  const growth = growthTables(grown).map(({ title, store, series, table }) => ({
    key: `w9 ${store} ${series}`,
    title,
    about: grown[0].about,
    table,
  }))
  return [...plain, ...growth]
}

export function environmentLine({ environment, versions, options }) {
  const servers = Object.entries(environment.servers).map(([name, version]) => `${name} ${version}`)
  const drivers = ['ioredis', 'redis'].map((name) => `${name} ${versions[name]}`)
  return [
    environment.date.slice(0, 10),
    `${environment.cpu}, ${environment.cores} cores`,
    `Node ${environment.node.slice(1)}`,
    ...servers,
    ...drivers,
    `load ${environment.loadBefore[0]} … ${Number(environment.loadAfter).toFixed(1)}`,
    `seed ${options.seed}${options.quick ? ', quick' : ''}`,
  ].join(' · ')
}
