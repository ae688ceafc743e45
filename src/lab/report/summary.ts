import type { RunRecord } from '../record.ts'
import { counted } from './escape.ts'
import type { Finding, Pile, Tally } from './tally.ts'
import { tally } from './tally.ts'

/** For a terminal that shows colours; otherwise text as it is. */
export type Paint = (colour: Colour | 'bold', text: string) => string

export type Colour = 'red' | 'green' | 'yellow' | 'cyan' | 'dim'

const plain: Paint = (_, text) => text

const NAMES: Readonly<Record<Pile, string>> = {
  held: 'held',
  broke: 'broke as expected',
  lucky: 'held, though not promised',
  unexpected: 'not as the table says',
  unknown: 'could not be decided',
  notRun: 'not run',
}

export const COLOURS: Readonly<Record<Pile, Colour>> = {
  held: 'green',
  broke: 'cyan',
  lucky: 'dim',
  unexpected: 'red',
  unknown: 'yellow',
  notRun: 'dim',
}

/** One run in a line. Of a flawed design one wants to know whether it was caught. */
export function runLine(record: RunRecord, paint: Paint = plain): string {
  const piles = tally([record])
  const flawed = /^specimen\/.*\/flawed$/.test(record.id)
  if (flawed && piles.broke.length > 0 && piles.unexpected.length + piles.unknown.length === 0) {
    const by = piles.broke.map(({ verdict }) => verdict.check).join(', ')
    return `${record.title}: ${paint('cyan', `caught by ${by}`)}`
  }
  if (flawed && piles.unexpected.length > 0)
    return `${record.title}: ${paint('red', piles.unexpected.some(({ verdict }) => verdict.seen === 'held') ? 'NOT CAUGHT' : 'broke in another way than it should')}`
  if (record.id.startsWith('others/') && piles.unexpected.length === 0)
    return foreignLine(record, piles, paint)
  const [bad] = [...piles.unexpected, ...piles.unknown]
  const why = bad === undefined ? '' : ` (${bad.verdict.check}: ${bad.verdict.why ?? bad.verdict.seen})`
  return `${record.title}: ${countsOf(piles, paint).join(', ')}${why}`
}

/** Of somebody else's library: what broke, without a word of what was promised. */
function foreignLine({ title }: RunRecord, { held, broke, unknown, notRun }: Tally, paint: Paint): string {
  const names = (all: readonly Finding[]): string => all.map(({ verdict }) => verdict.check).join(', ')
  const words = [
    ...(broke.length > 0 ? [paint('cyan', `broke: ${names(broke)}`)] : []),
    ...(broke.length === 0 && held.length > 0 ? [paint('green', 'held')] : []),
    ...(unknown.length === 0 ? [] : [paint('yellow', `undecided: ${names(unknown)}`)]),
    ...(held.length + broke.length + unknown.length === 0
      ? [`not run: ${notRun[0]?.verdict.why ?? ''}`]
      : []),
  ]
  return `${title}: ${words.join('; ')}`
}

function countsOf(piles: Tally, paint: Paint): string[] {
  return (Object.keys(NAMES) as Pile[])
    .filter((pile) => piles[pile].length > 0)
    .map((pile) => paint(COLOURS[pile], `${piles[pile].length} ${NAMES[pile]}`))
}

/** What held, what broke as expected, what did not go as the table says, and what was not run. */
export function summary(records: readonly RunRecord[], paint: Paint = plain): string {
  const piles = tally(records)
  const block = (pile: Pile, show: (finding: Finding) => string): string[] =>
    piles[pile].length === 0
      ? []
      : [
          '',
          paint('bold', `${sentence(NAMES[pile])}:`),
          ...unique(piles[pile].map(show)).map((line) => `  ${line}`),
        ]
  const where = ({ run }: Finding): string => `${run.store}, ${run.fault}`
  return [
    `${counted(records.length, 'run')}; verdicts: ${countsOf(piles, paint).join(', ')}`,
    ...block('broke', (one) => `${where(one)}: ${one.verdict.check} (${one.verdict.why ?? ''})`),
    ...block('notRun', (one) => `${where(one)}: ${one.verdict.why ?? ''}`),
    ...block('unknown', (one) => `${where(one)}: ${one.verdict.check}: ${one.verdict.why ?? ''}`),
    ...block('unexpected', (one) => {
      const { check, expected, seen, why = '' } = one.verdict
      const seed = one.run.seed === undefined ? '' : ` [seed ${one.run.seed}]`
      return `${where(one)}: ${paint('red', check)}: expected "${expected}", seen "${seen}". ${why}${seed}`
    }),
  ].join('\n')
}

const unique = (lines: readonly string[]): readonly string[] => [...new Set(lines)]

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
