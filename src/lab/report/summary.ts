import type { RunRecord } from '../record.ts'
import type { Finding, Pile } from './tally.ts'
import { tally } from './tally.ts'

/** For a terminal that shows colours; otherwise text as it is. */
export type Paint = (colour: 'red' | 'green' | 'yellow' | 'dim' | 'bold', text: string) => string

const plain: Paint = (_, text) => text

const NAMES: Readonly<Record<Pile, string>> = {
  held: 'held',
  broke: 'broke as expected',
  lucky: 'could break, did not this time',
  unexpected: 'not as the table says',
  unknown: 'could not be decided',
  notRun: 'not run',
}

export const COLOURS: Readonly<Record<Pile, 'red' | 'green' | 'yellow' | 'dim'>> = {
  held: 'green',
  broke: 'green',
  lucky: 'dim',
  unexpected: 'red',
  unknown: 'yellow',
  notRun: 'dim',
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
  const counts = (Object.keys(NAMES) as Pile[])
    .filter((pile) => piles[pile].length > 0)
    .map((pile) => `${paint(COLOURS[pile], String(piles[pile].length))} ${NAMES[pile]}`)
  return [
    `${records.length} runs; verdicts: ${counts.join(', ')}`,
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
