// Drives Chromium for the Ruby tests: reads one command a line, {"do": …, "page": …, …}, and answers each with a line,
// {"value": …} or {"error": …}. When its input ends, so does the browser. Every page is a user of its own, with storage of
// its own; what a page says on its console is kept and can be asked for. Arguments: the browser, and further flags for it.

import { createInterface } from 'node:readline'
import { chromium } from 'playwright-core'

const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'
]
const PATIENCE = 30_000 // ms for whatever a page is to do

// A profile of its own, which playwright makes and removes.
const browser = await chromium.launch({ executablePath: process.argv[2], args: [...FLAGS, ...process.argv.slice(3)] })
const pages = new Map()

const commands = {
  version: () => browser.version(),

  // +prompted+: what the user types where the page asks with prompt().
  async open({ page: name, url, prompted, options }) {
    const context = await browser.newContext(options)
    const page = await context.newPage()
    page.setDefaultTimeout(PATIENCE)
    page.said = []
    page.on('console', message => page.said.push(`${message.type()}: ${message.text()}`))
    page.on('dialog', dialog => dialog.accept(prompted ?? undefined))
    page.on('pageerror', error => page.said.push(`uncaught: ${error.message}`))
    pages.set(name, page)
    await page.goto(url)
  },

  said: ({ page }) => page.said,
  fill: ({ page, selector, text }) => page.fill(selector, text),
  click: ({ page, selector }) => page.click(selector),
  press: ({ page, selector, key }) => page.press(selector, key),
  reload: async ({ page }) => void await page.reload(),
  evaluate: ({ page, script }) => page.evaluate(script),
  screenshot: async ({ page, path }) => void await page.screenshot({ path }),

  async close({ page: name }) {
    await pages.get(name)?.context().close()
    pages.delete(name)
  }
}

async function run(command) {
  const page = ['open', 'close'].includes(command.do) ? command.page : pages.get(command.page)
  return { value: await commands[command.do]({ ...command, page }) ?? null }
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await run(JSON.parse(line)).catch(error => ({ error: error.message }))
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
await browser.close()
