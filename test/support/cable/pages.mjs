// Pages of an application with Action Cable, without a browser: each loads, subscribes with the JavaScript client of
// its Rails or with AnyCable's, and loses its connection a few times, while messages are published all the time. Every
// page must receive every message after the ones that it has loaded, once and in order.
//
// AnyCable's client drops messages that arrive before the confirmation of their subscription if the connection breaks in between, and
// asks for later ones then. These are counted as dropped, and not as lost: the server has sent them.
//
//   node pages.mjs '{"url": "http://127.0.0.1:9292", "client": "rails", "script": "…/actioncable.js", "pages": 100}'
//
// The application responds to GET /page with the channel and its parameters (JSON), to POST /publish with the number of
// a message, and has its cable at /cable. Prints one line of JSON.
import http from "node:http"
import { createRequire } from "node:module"
import { setTimeout as sleep } from "node:timers/promises"
import { pathToFileURL } from "node:url"

const settings = {
  client: "rails", pages: 100, together: 50, interval: 10, drops: 3, patience: 20_000, seed: 1,
  ...JSON.parse(process.argv[2])
}
const require = createRequire(import.meta.url)
const Socket = require("ws")
const agent = new http.Agent({ keepAlive: true })
const cable = `${settings.url.replace(/^http/, "ws")}/cable`

// Mulberry32: the same pauses for the same seed.
function random() {
  let value = settings.seed += 0x6D2B79F5
  value = Math.imul(value ^ value >>> 15, value | 1)
  value ^= value + Math.imul(value ^ value >>> 7, value | 61)
  return ((value ^ value >>> 14) >>> 0) / 4294967296
}

function request(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request(settings.url + path, { method, agent }, (response) => {
      let text = ""
      response.on("data", (data) => text += data)
      response.on("end", () => response.statusCode < 300 ? resolve(text) : reject(new Error(`${path}: ${response.statusCode} ${text}`)))
      response.on("error", reject)
    })
    request.on("error", reject)
    request.end(body)
  })
}

// Publishes one message after the other.
const published = { sent: 0, accepted: 0, over: false }

async function publish() {
  let due = performance.now()
  while (!published.over) {
    await request("POST", "/publish", String(published.sent += 1))
    published.accepted = published.sent
    due = Math.max(due + settings.interval, performance.now())
    await sleep(Math.max(0, due - performance.now()))
  }
}

// The numbers that a page has received.
class Received {
  constructor(before, after) {
    Object.assign(this, { before, last: after, missing: new Set(), arrived: new Set(), first: null, doubled: 0, misordered: 0, stale: 0, count: 0 })
  }

  get lost() { return this.missing.size - this.dropped }

  get dropped() { return [...this.missing].filter((number) => this.arrived.has(number)).length }

  // A page holds all messages up to `before`, and maybe some up to `after`: only later ones must come.
  add(number) {
    this.count += 1
    if (this.first === null) {
      this.first = number
      this.stale = Math.max(0, this.before - number + 1)
      this.last = Math.min(this.last, number - 1)
    }
    if (number > this.last) {
      this.skip(number)
      this.last = number
    } else if (this.missing.delete(number)) this.misordered += 1
    else this.doubled += 1
  }

  skip(number) {
    for (let missing = this.last + 1; missing < number; missing++) this.missing.add(missing)
  }
}

// Rails' own client. Instead of waiting six seconds it reconnects as it does when a page becomes visible again.
function rails() {
  Object.assign(globalThis, {
    self: globalThis, document: { visibilityState: "visible" }, addEventListener() {}, removeEventListener() {}
  })
  globalThis.document.addEventListener = globalThis.document.removeEventListener = () => {}
  globalThis.window = globalThis
  const { createConsumer, adapters } = require(settings.script)
  adapters.WebSocket = Socket
  return (params, received) => {
    const consumer = createConsumer(cable)
    consumer.subscriptions.create(params, { received })
    return {
      drop: () => consumer.connection.webSocket?.terminate(),
      reconnect: () => consumer.connection.open(),
      close: () => consumer.disconnect()
    }
  }
}

async function anycable() {
  const { createCable, Channel } = await import(pathToFileURL(settings.script))
  class News extends Channel { static identifier = "" }
  return (params, received, since, arrived) => {
    class RecordedSocket extends Socket {
      constructor(...settings) {
        super(...settings)
        this.on("message", (data) => arrived(JSON.parse(data).message?.number))
      }
    }
    const { channel, ...rest } = params
    News.identifier = channel
    const connection = createCable(cable, {
      websocketImplementation: RecordedSocket, protocol: "actioncable-v1-ext-json", historyTimestamp: since, logLevel: "error",
      reconnectStrategy: () => random() * 300
    })
    // It gives up a subscription that was not confirmed before its connection broke.
    const subscribe = () => {
      const news = new News(rest)
      news.on("message", received)
      news.on("close", () => connection.state !== "closed" && setTimeout(subscribe, 10))
      connection.subscribe(news)
    }
    subscribe()
    return {
      drop: () => connection.transport.ws?.terminate(),
      reconnect() {},
      close: () => connection.disconnect()
    }
  }
}

async function until(condition, what) {
  const end = performance.now() + settings.patience
  while (!condition()) {
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`)
    await sleep(5)
  }
}

async function live(open) {
  const before = published.accepted
  const since = Math.floor(Date.now() / 1000)
  const params = JSON.parse(await request("GET", "/page"))
  const received = new Received(before, published.sent)
  await sleep(random() * 200)
  const page = open(params, (message) => received.add(message.number), since, (number) => received.arrived.add(number))
  // AnyCable's client reconnects by itself.
  for (let drop = 0; drop < settings.drops; drop++) {
    await sleep(random() * 400)
    page.drop()
    await sleep(random() * 300)
    page.reconnect()
  }
  // A message that is published from now on comes through the last connection.
  const target = published.sent + 1
  try {
    await until(() => received.first && received.last >= target, `message ${target}`)
  } catch (error) {
    received.skip(target)
    received.error = error.message
  }
  page.close()
  return received
}

const open = await (settings.client === "rails" ? rails() : anycable())
const found = []
let opened = 0
const publishing = publish()
await Promise.all(Array.from({ length: Math.min(settings.together, settings.pages) }, async () => {
  while (opened++ < settings.pages) found.push(await live(open))
}))
published.over = true
await publishing
agent.destroy()

const sum = (name) => found.reduce((total, page) => total + page[name], 0)
console.log(JSON.stringify({
  pages: found.length, published: published.sent, received: sum("count"), lost: sum("lost"), dropped: sum("dropped"), doubled: sum("doubled"), misordered: sum("misordered"), stale: sum("stale"),
  harmed: found.filter((page) => page.lost + page.doubled > 0).length, errors: [...new Set(found.map((page) => page.error).filter(Boolean))].slice(0, 5)
}))
process.exit(0)
