import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { afterAll, beforeAll, describe, expect, it } from 'vitest'

import { available, chromium } from '../../../scripts/services.mjs'
import { report } from '../../../src/lab/report/html.ts'
import { Page } from './browser.ts'
import { calm, crowded, missing, paused } from './records.ts'

const PHONE = 375
const DESK = 1200

describe.skipIf(!available('chromium'))('The report in Chromium', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-report-'))
  const file = join(folder, 'report.html')
  const url = pathToFileURL(file).href
  let page: Page

  beforeAll(async () => {
    writeFileSync(file, report([paused, calm, missing, crowded(5000)]))
    page = await Page.open(await chromium())
  })
  afterAll(async () => {
    await page.close()
    rmSync(folder, { recursive: true })
  })

  it('opens without network and without complaints', async () => {
    await page.show(url, DESK)
    expect(await page.evaluate('document.querySelector("h1").textContent')).toBe('holdfast lab')
    expect(page.requests).toEqual([url])
    expect(page.complaints).toEqual([])
  })

  it('has a run that went wrong open, and draws its violation in red across both clients', async () => {
    await page.show(url, DESK)
    expect(
      await page.evaluate('[...document.querySelectorAll("details.run")].map((one) => one.open)'),
    ).toEqual([true, false, false, true])
    const red = await page.evaluate<string>(
      'getComputedStyle(document.querySelector("circle.violation")).stroke',
    )
    expect(red).toBe('rgb(200, 16, 46)')
    const first = 'document.querySelector("details.run")'
    expect(await page.evaluate(`${first}.querySelectorAll("circle.violation").length`)).toBe(2)
    expect(await page.evaluate(`${first}.querySelectorAll("table.events tbody tr").length`)).toBeGreaterThan(
      8,
    )
  })

  it.each([PHONE, DESK])('is as wide as its window at %i pixels', async (width) => {
    await page.show(url, width)
    await page.evaluate('document.querySelectorAll("details").forEach((one) => (one.open = true))')
    expect(await page.evaluate('document.scrollingElement.scrollWidth')).toBe(width)
    // The pictures scroll inside; every verdict can be read.
    expect(
      await page.evaluate(
        '[...document.querySelectorAll("table.verdicts td:not(.none)")].every((cell) => cell.getBoundingClientRect().right <= innerWidth)',
      ),
    ).toBe(true)
  })

  it('follows the dark scheme', async () => {
    const background = 'getComputedStyle(document.body).backgroundColor'
    await page.show(url, DESK, 'dark')
    expect(await page.evaluate(background)).toBe('rgb(17, 22, 29)')
    await page.show(url, DESK, 'light')
    expect(await page.evaluate(background)).toBe('rgb(255, 255, 255)')
  })

  it('can be used with the keyboard: a link opens its run, the zoom widens the picture, the picture scrolls', async () => {
    await page.show(url, DESK)
    await page.evaluate('document.querySelector("a[href=\'#run-live-redis-none\']").focus()')
    await page.press('Enter')
    await page.evaluate(
      'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))',
    )
    expect(await page.evaluate('document.querySelectorAll("details.run")[1].open')).toBe(true)
    const picture = 'document.querySelector("details.run svg")'
    const before = await page.evaluate<number>(`${picture}.getBoundingClientRect().width`)
    await page.evaluate('document.querySelector("details.run .z1").focus()')
    await page.press('ArrowRight')
    const after = await page.evaluate<number>(`${picture}.getBoundingClientRect().width`)
    expect(after / before).toBeCloseTo(4, 0)
    await page.press('Tab')
    expect(await page.evaluate('document.activeElement.className')).toBe('view')
  })

  it('gives every picture and every part of it words', async () => {
    await page.show(url, DESK)
    expect(await page.evaluate('[...document.querySelectorAll("svg")].every((one) => one.ariaLabel)')).toBe(
      true,
    )
    expect(
      await page.evaluate(
        '[...document.querySelectorAll("svg > g")].every((one) => one.querySelector("title"))',
      ),
    ).toBe(true)
  })
})
