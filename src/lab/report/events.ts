import type { RunRecord, TimelineEvent, ViolationRecord } from '../record.ts'
import { escape, milliseconds } from './escape.ts'

const AROUND = 8
export const MOST_ROWS = 300
const MOST_VIOLATIONS = 12

/** Each violation with what happened just before and after it. */
export function violationSections(run: RunRecord): string {
  if (run.violations.length === 0) return ''
  const shown = run.violations.slice(0, MOST_VIOLATIONS)
  const rest = run.violations.length - shown.length
  const more = rest === 0 ? '' : `<p>… and ${rest} more of the kind.</p>`
  return `<h4>Violations</h4>${shown.map((violation) => section(run, violation)).join('')}${more}`
}

function section(run: RunRecord, { check, message, at, clients }: ViolationRecord): string {
  const head = `<p class="violation-text"><strong>${escape(check)}</strong>: ${escape(message)}${at === undefined ? '' : ` (at ${milliseconds(at)})`}</p>`
  if (at === undefined) return head
  const concerned = run.timeline.filter(({ client }) => clients === undefined || clients.includes(client))
  const index = concerned.findIndex((event) => event.at >= at)
  const middle = index === -1 ? concerned.length : index
  const near = concerned.slice(Math.max(0, middle - AROUND), middle + AROUND)
  return `${head}${eventTable(near, `Around ${milliseconds(at)}`)}`
}

/** The picture in words, for whoever cannot see it. */
export function allEvents(run: RunRecord, most: number = MOST_ROWS): string {
  const rows = run.timeline.slice(0, most)
  if (rows.length === 0) return ''
  const rest = run.timeline.length - rows.length
  const more = rest === 0 ? '' : `<p>${rest} more are in the JSON.</p>`
  return `<details><summary>All events as text (${run.timeline.length})</summary>${eventTable(rows, 'All events')}${more}</details>`
}

function eventTable(events: readonly TimelineEvent[], caption: string): string {
  const rows = events.map(
    ({ at, client, kind, token = '', detail = '' }) =>
      `<tr class="${kind}"><td>${milliseconds(at)}</td><td>${escape(client)}</td><td>${kind}</td><td>${escape(token)}</td><td>${escape(detail)}</td></tr>`,
  )
  return `<div class="scroll" tabindex="0" role="region" aria-label="${escape(caption)}"><table class="events"><caption>${escape(caption)}</caption>
<thead><tr><th scope="col">when</th><th scope="col">client</th><th scope="col">what</th><th scope="col">token</th><th scope="col"></th></tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}
