// The page shows what the event stream of the control server sends: once a history of ten minutes, then a snapshot each second.
// The token is sent as a header, so there is no cookie that another page could use. No text of the server becomes HTML.
'use strict'

const $ = id => document.getElementById(id)
const POINTS = 600
const SILENT = 4000 // ms without a snapshot
const HIDDEN_KEY = 'fairlead-token'
const [AT, RATE, P50, P95, P99, QUEUE, ROOM, LOCK] = [0, 1, 2, 3, 4, 5, 6, 7]

// --- texts

const count = number => Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, ' ')
const decimal = number => number == null ? '–' : number < 10 && number > 0 ? number.toFixed(1) : count(number)

function time(seconds) {
  if (seconds == null) return '–'
  if (seconds === 0) return '0 ms'
  if (seconds < 0.000995) return `${Math.round(seconds * 1e6)} µs`
  if (seconds < 0.0995) return `${(seconds * 1000).toPrecision(2).replace(/\.0$/, '')} ms`
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`
  return seconds < 60 ? `${seconds.toFixed(1)} s` : age(seconds)
}

function age(seconds) {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']]
  const index = Math.max(0, units.findIndex(([size]) => seconds >= size))
  const [size, name] = seconds < 1 ? units[3] : units[index]
  const rest = units[index + 1]
  const more = rest && seconds >= size ? Math.floor(seconds % size / rest[0]) : 0
  return `${Math.floor(seconds / size)} ${name}${more ? ` ${more} ${rest[1]}` : ''}`
}

// Minutes and seconds, which change evenly.
function duration(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60]
  const [hours, minutes, rest] = parts.map(part => String(part).padStart(2, '0'))
  return parts[0] ? `${parts[0]}:${minutes}:${rest} h` : `${parts[1]}:${rest} min`
}

function bytes(number) {
  if (number == null) return '–'
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  const step = Math.min(4, Math.max(0, Math.floor(Math.log2(Math.max(1, number)) / 10)))
  const value = number / 1024 ** step
  return `${value < 10 && step > 0 ? value.toFixed(1) : Math.round(value)} ${units[step]}`
}

// --- elements

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.append(...children)
  return made
}

function write(node, text) {
  if (node.textContent !== String(text)) node.textContent = text
}

function mark(node, key, value) {
  if (node.dataset[key] !== value) node.dataset[key] = value
}

// Keeps one child for each item, in order, so that focus and selection stay. A new child is made by make(item).
function keep(parent, items, key, make, update) {
  parent.kept ??= new Map()
  const wanted = new Set(items.map(key))
  for (const [name, node] of parent.kept) {
    if (!wanted.has(name)) { node.remove(); parent.kept.delete(name) }
  }
  let place = parent.firstElementChild
  for (const item of items) {
    let node = parent.kept.get(key(item))
    if (!node) parent.kept.set(key(item), node = make(item))
    if (node === place) place = place.nextElementSibling
    else parent.insertBefore(node, place)
    update(node, item)
  }
}

// --- charts

class Chart {
  // series: [name, index in a point, class]; format: text of a value; least: the lowest upper end of the axis.
  constructor(figure, series, format, least, stacked) {
    Object.assign(this, { figure, series, format, least, stacked, cursor: null, points: [] })
    this.title = figure.querySelector('figcaption').textContent
    this.svg = shape('svg', { viewBox: '0 0 600 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' })
    this.top = element('output', { 'aria-hidden': 'true' })
    this.values = series.map(() => element('b'))
    this.when = element('li')
    const legend = element('ul', { class: 'legend' }, ...series.map(([name, , style], i) => {
      const sample = stacked
        ? shape('rect', { width: 20, height: 10, class: `area ${style}` })
        : shape('path', { d: 'M0 5H20', class: `line ${style}` })
      return element('li', {}, shape('svg', { viewBox: '0 0 20 10', 'aria-hidden': 'true' }, sample), `${name} `, this.values[i])
    }), this.when)
    const plot = element('div', { class: 'plot', tabindex: 0, role: 'group',
      'aria-label': `${this.title}, the last ten minutes; left and right arrow show earlier values` }, this.svg, this.top)
    this.rows = element('tbody')
    const head = element('tr', {}, ...['Minutes ago', ...series.map(([name]) => name)].map(text => element('th', { scope: 'col' }, text)))
    const table = element('table', { class: 'unseen' }, element('caption', {}, `${this.title}, by minute`), element('thead', {}, head), this.rows)
    const axis = element('div', { class: 'axis', 'aria-hidden': 'true' }, element('span', {}, '10 min ago'), element('span', {}, '5'), element('span', {}, 'now'))
    figure.append(legend, plot, axis, table)
    plot.addEventListener('pointermove', event => this.point(event))
    plot.addEventListener('pointerleave', () => this.at(null))
    plot.addEventListener('blur', () => this.at(null))
    plot.addEventListener('keydown', event => this.key(event))
  }

  show(points, now) {
    Object.assign(this, { points, now })
    this.draw()
    this.tell()
    this.tabulate()
  }

  x(point) { return 600 - (this.now - point[AT]) / 1000 }

  draw() {
    const sums = this.points.map(point => {
      let sum = 0
      return this.series.map(([, index]) => point[index] == null ? null : sum = (this.stacked ? sum : 0) + point[index])
    })
    const highest = roundUp(Math.max(this.least, ...sums.flat().filter(value => value != null)))
    const y = value => 100 - value / highest * 88
    const children = [shape('path', { class: 'grid', d: `M0 ${y(highest)}H600M0 ${y(highest / 2)}H600` })]
    for (let i = this.series.length - 1; i >= 0; i--) {
      const style = this.series[i][2]
      children.push(this.stacked
        ? shape('path', { class: `area ${style}`, d: this.area(sums, i, y) })
        : shape('path', { class: `line ${style}`, d: this.line(sums, i, y) }))
    }
    if (this.cursor != null && this.points.length) {
      const x = this.x(this.chosen())
      children.push(shape('path', { class: 'cursor', d: `M${x} 0V100` }))
    }
    this.svg.replaceChildren(...children)
    write(this.top, this.format(highest))
  }

  line(sums, i, y) {
    let text = '', pen = 'M'
    sums.forEach((values, place) => {
      if (values[i] == null) { pen = 'M'; return }
      const x = this.x(this.points[place])
      text += `${pen}${x.toFixed(1)} ${y(values[i]).toFixed(1)}${pen === 'M' ? 'h.1' : ''}`
      pen = 'L'
    })
    return text
  }

  area(sums, i, y) {
    return sums.map((values, place) => {
      if (values[i] == null) return ''
      const x = this.x(this.points[place]), lower = i === 0 ? 0 : values[i - 1] ?? 0
      return values[i] > lower ? `M${(x - 1).toFixed(1)} ${y(lower).toFixed(2)}V${y(values[i]).toFixed(2)}h1.1V${y(lower).toFixed(2)}z` : ''
    }).join('')
  }

  chosen() { return this.points[Math.max(0, this.points.length - 1 - (this.cursor ?? 0))] }

  tell() {
    const point = this.points.length ? this.chosen() : []
    this.series.forEach(([, index], i) => write(this.values[i], this.format(point[index])))
    write(this.when, this.cursor == null || !point.length ? '' : `${age((this.now - point[AT]) / 1000)} ago`)
  }

  // One row a minute for those who cannot see the lines: averages, which are what a sighted reader takes from them.
  tabulate() {
    const rows = []
    for (let minute = 0; minute < 10; minute++) {
      const inside = this.points.filter(point => Math.floor((this.now - point[AT]) / 60000) === minute)
      if (!inside.length) continue
      const cells = this.series.map(([, index]) => {
        const values = inside.map(point => point[index]).filter(value => value != null)
        return this.format(values.length ? values.reduce((a, b) => a + b, 0) / values.length : null)
      })
      rows.push([minute, ...cells])
    }
    keep(this.rows, rows, row => row[0], () => element('tr'), (node, row) => {
      keep(node, row.map((text, i) => ({ text, i })), cell => cell.i, () => element('td'), (cell, { text }) => write(cell, text))
    })
  }

  point(event) {
    const box = this.svg.getBoundingClientRect()
    const wanted = (event.clientX - box.left) / box.width * 600
    const index = this.points.findIndex(point => this.x(point) >= wanted)
    this.at(index < 0 ? null : this.points.length - 1 - index)
  }

  key(event) {
    const step = { ArrowLeft: 10, ArrowRight: -10, Home: POINTS, Escape: -POINTS, End: -POINTS }[event.key]
    if (!step) return
    event.preventDefault()
    const cursor = Math.min(this.points.length - 1, (this.cursor ?? 0) + step)
    this.at(cursor < 0 ? null : cursor)
  }

  at(cursor) {
    if (cursor === this.cursor || !this.points.length) return
    this.cursor = cursor
    this.draw()
    this.tell()
  }
}

function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].find(step => step * power >= value) * power
}

const charts = [
  new Chart($('chart-rate'), [['all workers', RATE, 'a']], decimal, 1, false),
  new Chart($('chart-latency'), [['median', P50, 'a'], ['95 %', P95, 'b'], ['99 %', P99, 'c']], time, 1e-3, false),
  new Chart($('chart-waits'), [['queue', QUEUE, 'a'], ['waiting room', ROOM, 'b'], ['lock', LOCK, 'c']], time, 1e-4, true)
]

// --- the parts of a snapshot

let points = []

function showHistory(history) {
  points = history
}

function showSnapshot(snapshot) {
  if (snapshot.point && snapshot.point[AT] > (points.at(-1)?.[AT] ?? -1)) points.push(snapshot.point)
  points = points.filter(point => point[AT] > snapshot.now - POINTS * 1000).slice(-POINTS)
  $('main').hidden = false
  showServer(snapshot)
  showNow(snapshot)
  charts.forEach(chart => chart.show(points, snapshot.now))
  showRunning(snapshot.running, snapshot)
  showWorkers(snapshot)
  showLists(snapshot)
}

const sum = (list, key) => list.reduce((total, one) => total + (one[key] ?? 0), 0)

function showServer({ state, version, ruby, pid, uptime, restart, addresses }) {
  write($('state'), state)
  mark($('state'), 'state', state)
  write($('about'), `${addresses.join(', ')} · ${version} · Ruby ${ruby} · pid ${pid} · up ${age(uptime)}`)
  document.title = `${state === 'ready' ? '' : `${state} · `}${addresses[0]?.replace(/^https?:\/\//, '') ?? ''} · Fairlead`
  const shown = restart && restart.state !== 'done'
  $('restart').hidden = !shown
  if (shown) write($('restart'), restart.state === 'running' ? `A ${restart.kind} restart is running.` : `The last ${restart.kind} restart has failed; the old code still serves. ${restart.error ?? ''}`)
}

function showNow({ point, percentiles, processes, waiting_room: room, max_threads: most, memory }) {
  write($('rate'), decimal(point?.[RATE] ?? 0))
  write($('p50'), time(percentiles[0]))
  write($('p95'), time(percentiles[1]))
  write($('p99'), time(percentiles[2]))
  write($('busy'), count(sum(processes, 'busy_threads')))
  write($('busy-of'), `of ${count(processes.filter(one => one.state === 'serving').length * most)}`)
  write($('waiting'), count(sum(processes, 'queued') + (room?.waiting ?? 0)))
  write($('waiting-room'), room ? `${count(room.waiting)} in the waiting room` : '')
  write($('connections'), count(sum(processes, 'connections')))
  write($('connections-share'), processes.length > 1 ? `up to ${count(Math.max(0, ...processes.map(one => one.connections)))} per worker` : '')
  write($('clients'), count(sum(processes, 'clients')))
  $('memory-tile').hidden = memory == null
  write($('memory'), bytes(memory))
}

function makeRunning(item) {
  const id = `trace-${item.id}`
  const button = element('button', { type: 'button', 'aria-expanded': 'false', 'aria-controls': id },
    element('span', { class: 'time' }), element('span', { class: 'request' }, item.request), element('span', { class: 'where' }))
  const trace = element('pre', { id, tabindex: 0, hidden: '' })
  const node = element('li', {}, button, trace)
  button.addEventListener('click', () => {
    const open = button.getAttribute('aria-expanded') !== 'true'
    button.setAttribute('aria-expanded', open)
    trace.hidden = !open
    opened[open ? 'set' : 'delete'](item.id, node.item)
    if (open) showTrace(item, trace)
  })
  return node
}

const opened = new Map()

// A request that has ended stays while its backtrace is open.
function showRunning(running, snapshot) {
  const kept = $('running').kept
  const items = running.map(one => ({ ...one, begun: kept?.get(one.id)?.item.begun ?? snapshot.now / 1000 - one.seconds }))
  const ids = new Set(items.map(item => item.id))
  const ended = [...opened.values()].filter(item => !ids.has(item.id)).map(item => ({ ...item, ended: true }))
  const shown = [...items, ...ended].sort((one, other) => one.begun - other.begun)
  keep($('running'), shown, item => item.id, makeRunning, (node, item) => {
    node.item = item
    const [when, , where] = node.firstElementChild.children
    write(when, item.ended ? 'ended' : item.seconds < 60 ? time(item.seconds) : duration(item.seconds))
    when.classList.toggle('slow', !item.ended && item.seconds >= 5)
    write(where, snapshot.workers ? `worker ${item.worker}, thread ${item.thread}` : `thread ${item.thread}`)
  })
  const busy = sum(snapshot.processes, 'busy_threads')
  $('running-empty').hidden = shown.length > 0
  write($('running-count'), busy > items.length && items.length ? `${items.length} of ${busy}` : '')
}

async function showTrace({ pid, thread, request }, trace) {
  write(trace, 'Asking the worker …')
  try {
    const response = await fetch(`backtraces?pid=${pid}`, { headers: headers(), cache: 'no-store' })
    if (!response.ok) return write(trace, response.status === 404 ? 'control_data_only allows no backtraces.' : await response.text())
    const [answer] = await response.json()
    write(trace, answer ? backtrace(answer, thread, request) : 'The process has ended.')
  } catch {
    write(trace, 'The control server does not answer.')
  }
}

function backtrace({ threads, native }, id, request) {
  if (!threads) return `Ruby does not answer: a thread keeps Ruby's lock in native code, or the process is stopped.\nIts native threads:\n${(native ?? '').split(', ').join('\n')}`
  const found = threads.find(one => one.thread === id) ?? threads.find(one => one.request === request)
  if (!found?.request) return 'The request has ended.'
  return found.backtrace.join('\n') || 'The thread has no Ruby frames.'
}

function makeWorker() {
  const bar = () => element('span', { class: 'bar', 'aria-hidden': 'true' }, element('i'))
  const cell = name => element('td', name ? { class: name } : {})
  return element('tr', {}, element('th', { scope: 'row' }), element('td', {}, element('span', { class: 'state' })),
    element('td', {}, bar(), element('span')), cell('number'), cell('number'), cell('number wide'), element('td', {}, bar(), element('span')),
    cell('number'), cell('number memory'), cell('number wide'), cell('number wide'), cell('number wide'))
}

function fill(cell, part, whole, text) {
  cell.firstElementChild.firstElementChild.style.width = `${whole > 0 ? Math.min(100, part / whole * 100).toFixed(1) : 0}%`
  write(cell.lastElementChild, text)
}

function stateOf(process, most) {
  if (process.state === 'serving' && process.heartbeat_age > 10) return ['silent', 'silent']
  if (process.state === 'serving' && process.busy_threads >= most) return ['full', 'all busy']
  return [process.state, process.state]
}

function showWorkers({ processes, workers, max_threads: most, generation }) {
  const connections = sum(processes, 'connections')
  const hasMemory = processes.some(one => one.memory != null)
  document.querySelectorAll('th.memory').forEach(cell => cell.hidden = !hasMemory)
  keep($('workers'), processes, one => `${one.slot}-${one.pid}`, makeWorker, (row, one) => {
    const [name, state, busy, queued, rate, requests, open, clients, memory, pid, code, up] = row.children
    const [kind, text] = stateOf(one, most)
    write(name, workers ? one.index : 'only')
    write(state.firstElementChild, text)
    mark(state.firstElementChild, 'state', kind)
    fill(busy, one.busy_threads, most, `${one.busy_threads} of ${most}`)
    write(queued, count(one.queued))
    write(rate, decimal(one.rate))
    write(requests, count(one.requests))
    fill(open, one.connections, connections, `${count(one.connections)}${workers > 1 && connections ? ` (${Math.round(one.connections / connections * 100)} %)` : ''}`)
    write(clients, count(one.clients))
    write(memory, bytes(one.memory))
    memory.hidden = !hasMemory
    write(pid, one.pid ?? '–')
    write(code, one.generation === generation ? one.generation : `${one.generation}, old`)
    write(up, age(one.uptime))
  })
  const serving = processes.filter(one => one.state === 'serving').length
  write($('workers-count'), workers ? `${serving} of ${workers} serve` : 'a single process')
}

function list(node, pairs) {
  keep(node, pairs.flatMap(([name, value]) => [{ name, text: name, tag: 'dt' }, { name, text: value, tag: 'dd' }]), one => one.tag + one.name,
    one => element(one.tag), (child, one) => write(child, one.text))
}

function showLists({ refusals, processes, waiting_room: room, started_at: started, generation, restart }) {
  list($('refusals'), refusals.length ? refusals.map(([reason, number]) => [reason.replaceAll('_', ' '), count(number)]) : [['nothing', '0']])
  list($('realtime'), [['Clients', count(sum(processes, 'clients'))],
    ['WebSockets', count(sum(processes, 'websockets'))], ['Event streams', count(sum(processes, 'event_streams'))],
    ['Channels, summed over workers', count(sum(processes, 'channels'))], ['Subscriptions', count(sum(processes, 'subscriptions'))],
    ['Messages published', count(sum(processes, 'published'))], ['Messages delivered', count(sum(processes, 'delivered'))],
    ['Messages dropped', count(sum(processes, 'dropped'))]])
  list($('server'), [['Started', started.replace('T', ' ').replace(/\.\d+Z$/, ' UTC')], ['Generation', generation],
    ['Last restart', restart ? `${restart.kind}: ${restart.state}` : 'none'],
    ...(room ? [['Moved to other workers', count(room.moved)]] : [])])
}

// --- the connection

let token = sessionStorage.getItem(HIDDEN_KEY)
let stream = null
let heard = 0

// The address of `fairlead ctl dashboard` has a secret behind the #, which browsers do not send. It leaves the address at once.
if (location.hash.length > 1) {
  token = decodeURIComponent(location.hash.slice(1))
  sessionStorage.setItem(HIDDEN_KEY, token)
  history.replaceState(null, '', location.pathname)
}

const headers = () => token ? { authorization: `Bearer ${token}` } : {}

function say(text, state) {
  write($('link'), text)
  $('main').classList.toggle('stale', state === 'lost')
  if (state) { write($('state'), state); mark($('state'), 'state', state) }
}

function ask(reason) {
  $('main').hidden = true
  $('login').hidden = false
  write($('login-reason'), reason)
  say('')
  $('token').focus()
}

$('login').addEventListener('submit', event => {
  event.preventDefault()
  token = $('token').value
  $('token').value = ''
  sessionStorage.setItem(HIDDEN_KEY, token)
  $('login').hidden = true
  watch()
})

function take(text) {
  const name = text.match(/^event: (.*)$/m)?.[1]
  const data = text.match(/^data: (.*)$/m)?.[1]
  if (!data) return
  heard = Date.now()
  if (name === 'history') return showHistory(JSON.parse(data))
  say('live')
  showSnapshot(JSON.parse(data))
}

async function read(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { value, done } = await reader.read()
    if (done) return
    const parts = (text + value).split('\n\n')
    text = parts.pop()
    parts.forEach(take)
  }
}

async function watch() {
  stream?.abort()
  const own = stream = new AbortController()
  let pause = 1000
  while (own === stream && !document.hidden) {
    try {
      const response = await fetch('dashboard/events', { headers: headers(), cache: 'no-store', signal: own.signal })
      if (response.status === 403) return ask(token ? 'The server refuses this token.' : '')
      if (response.ok) { pause = 1000; await read(response) } else say(await response.text(), 'lost')
    } catch { /* the connection has failed: once more below */ }
    if (own.signal.aborted) return
    if (heard) say(`no connection since ${new Date(heard).toLocaleTimeString()}`, 'lost')
    await new Promise(done => setTimeout(done, pause))
    pause = Math.min(pause * 2, 10_000)
  }
}

document.addEventListener('visibilitychange', () => document.hidden ? stream?.abort() : watch())
setInterval(() => {
  if (heard && !document.hidden && $('login').hidden && Date.now() - heard > SILENT) say(`no data for ${age((Date.now() - heard) / 1000)}`, 'lost')
}, 1000)
watch()
