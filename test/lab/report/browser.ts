import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
  readonly sessionId?: string
}

interface Waiting {
  readonly resolve: (result: Record<string, unknown>) => void
  readonly reject: (error: Error) => void
}

/**
 * A page in a real browser, spoken to over the pipe that Chromium offers for this (`--remote-debugging-pipe`): JSON between
 * zero bytes. A driver's package would do the same in some megabytes.
 */
export class Page {
  /** What the page asked the network for, and what it complained about. */
  readonly requests: string[] = []
  readonly complaints: string[] = []
  private readonly child: ChildProcess
  private readonly folder: string
  private readonly waiting = new Map<number, Waiting>()
  private readonly loads: (() => void)[] = []
  private session: string | undefined
  private ids = 0
  private rest = ''

  private constructor(child: ChildProcess, folder: string) {
    this.child = child
    this.folder = folder
    const replies = child.stdio[4] as Readable
    replies.setEncoding('utf8').on('data', (text) => this.heard(String(text)))
  }

  static async open(program: string): Promise<Page> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-chromium-'))
    const flags = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--hide-scrollbars',
      '--remote-debugging-pipe',
    ]
    const child = spawn(program, [...flags, `--user-data-dir=${folder}`, 'about:blank'], {
      // A group of its own: its helpers live on for a moment when it is killed, and write to the folder. Without the pipe it ends by itself.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    })
    const page = new Page(child, folder)
    const { targetId } = await page.send('Target.createTarget', { url: 'about:blank' })
    const { sessionId } = await page.send('Target.attachToTarget', { targetId, flatten: true })
    page.session = sessionId as string
    for (const domain of ['Page', 'Network', 'Runtime', 'Log']) await page.send(`${domain}.enable`)
    return page
  }

  /** As wide as this, with light or dark colours. */
  async show(url: string, width: number, scheme: 'light' | 'dark' = 'light'): Promise<void> {
    const metrics = { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 }
    await this.send('Emulation.setDeviceMetricsOverride', metrics)
    const features = [{ name: 'prefers-color-scheme', value: scheme }]
    await this.send('Emulation.setEmulatedMedia', { features })
    const loaded = new Promise<void>((resolve) => void this.loads.push(resolve))
    await this.send('Page.navigate', { url })
    await loaded
  }

  async evaluate<T>(expression: string): Promise<T> {
    const answer = await this.send('Runtime.evaluate', {
      expression,
      returnByValue: true,
      awaitPromise: true,
    })
    if (answer['exceptionDetails'] !== undefined) throw new Error(JSON.stringify(answer['exceptionDetails']))
    return (answer['result'] as { value: T }).value
  }

  async press(key: 'Tab' | 'Enter' | 'ArrowRight'): Promise<void> {
    const code = { Tab: 9, Enter: 13, ArrowRight: 39 }[key]
    const text = key === 'Enter' ? { text: '\r' } : {}
    const common = { key, code: key, windowsVirtualKeyCode: code }
    await this.send('Input.dispatchKeyEvent', {
      type: key === 'Enter' ? 'keyDown' : 'rawKeyDown',
      ...common,
      ...text,
    })
    await this.send('Input.dispatchKeyEvent', { type: 'keyUp', ...common })
  }

  async screenshot(): Promise<Buffer> {
    const { data } = await this.send('Page.captureScreenshot', { format: 'png' })
    return Buffer.from(data as string, 'base64')
  }

  async close(): Promise<void> {
    const gone = new Promise((resolve) => void this.child.once('exit', resolve))
    if (this.child.pid !== undefined) process.kill(-this.child.pid, 'SIGKILL')
    await gone
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
  }

  private send(method: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    this.ids += 1
    const id = this.ids
    const message = { id, method, params, ...(this.session === undefined ? {} : { sessionId: this.session }) }
    ;(this.child.stdio[3] as Writable).write(`${JSON.stringify(message)}\0`)
    return new Promise((resolve, reject) => void this.waiting.set(id, { resolve, reject }))
  }

  private heard(text: string): void {
    const parts = (this.rest + text).split('\0')
    this.rest = parts.pop() ?? ''
    for (const part of parts) this.handle(JSON.parse(part) as Message)
  }

  private handle({ id, method, params = {}, result = {}, error }: Message): void {
    if (id !== undefined) {
      const waiting = this.waiting.get(id)
      this.waiting.delete(id)
      if (error === undefined) waiting?.resolve(result)
      else waiting?.reject(new Error(error.message))
    } else if (method === 'Page.loadEventFired') {
      for (const resolve of this.loads.splice(0)) resolve()
    } else if (method === 'Network.requestWillBeSent') {
      this.requests.push((params['request'] as { url: string }).url)
    } else if (method === 'Runtime.exceptionThrown' || method === 'Log.entryAdded') {
      this.complaints.push(JSON.stringify(params))
    }
  }
}
