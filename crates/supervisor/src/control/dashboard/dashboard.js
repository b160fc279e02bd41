// The page shows what the event stream of the control server sends: once a history of ten minutes, then a snapshot each second.
// The token is sent as a header, so there is no cookie that another page could use.
'use strict'

const $ = id => document.getElementById(id)
const SILENT = 4000 // ms without a snapshot
const RETRY = 10_000 // ms until another connection
const TOKEN_KEY = 'fairlead-token'

const charts = [
  new Chart($('chart-rate'), [['all workers', RATE, 'a']], decimal, 1, 'lines'),
  new Chart($('chart-latency'), [['median', P50, 'a'], ['95 %', P95, 'b'], ['99 %', P99, 'c']], latency, 1e-3, 'logarithmic'),
  new Chart($('chart-waits'), [['queue', QUEUE, 'a'], ['waiting room', ROOM, 'b'], ['lock', LOCK, 'c']], time, 1e-4, 'stacked')
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

function showServer({ state, version, ruby, pid, uptime, pause, restart, addresses }) {
  write($('state'), state)
  mark($('state'), 'state', state)
  write($('about'), `${addresses.join(', ')} · ${version} · Ruby ${ruby} · pid ${pid} · up ${age(uptime)}`)
  document.title = `${state === 'ready' ? '' : `${state} · `}${addresses[0]?.replace(/^https?:\/\//, '') ?? ''} · Fairlead`
  $('pause').hidden = !pause
  if (pause) write($('pause'), `Paused: new requests wait for up to ${time(pause.timeout)}. The pause ends in ${time(Math.ceil(pause.left))} at the latest.`)
  const shown = restart && restart.state !== 'done'
  $('restart').hidden = !shown
  if (shown) write($('restart'), restart.state === 'running' ? `A ${restart.kind} restart is running.` : `The last ${restart.kind} restart has failed; the old code still serves. ${restart.error ?? ''}`)
}

function showNow({ point, percentiles, processes, waiting_room: room, max_threads: most, memory }) {
  write($('rate'), decimal(point?.[RATE] ?? 0))
  write($('p50'), latency(percentiles[0]))
  write($('p95'), latency(percentiles[1]))
  write($('p99'), latency(percentiles[2]))
  write($('busy'), count(sum(processes, 'busy_threads')))
  write($('busy-of'), `of ${count(processes.filter(one => one.state === 'serving').length * most)}`)
  write($('waiting'), count(sum(processes, 'queued') + (room?.waiting ?? 0)))
  write($('waiting-room'), room ? `${count(room.waiting)} in waiting room` : '')
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
  if (!threads && !native) return 'The process has ended.'
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

let token = sessionStorage.getItem(TOKEN_KEY)
let stream = null
let heard = 0
let tried = 0

// The address of `fairlead ctl dashboard` has a secret behind the #, which browsers do not send. It leaves the address at once.
if (location.hash.length > 1) {
  token = decodeURIComponent(location.hash.slice(1))
  sessionStorage.setItem(TOKEN_KEY, token)
  history.replaceState(null, '', location.pathname)
}

const headers = () => token ? { authorization: `Bearer ${token}` } : {}

function say(text, state) {
  write($('link'), text)
  $('main').classList.toggle('stale', state === 'lost')
  if (state) { write($('state'), state); mark($('state'), 'state', state) }
}

// The text stays the same, so a screen reader says it once.
function lose(reason) {
  say(reason ?? (heard ? `no data since ${new Date(heard).toLocaleTimeString()}` : 'no connection'), 'lost')
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
  sessionStorage.setItem(TOKEN_KEY, token)
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
  tried = Date.now()
  let pause = 1000
  while (own === stream && !document.hidden) {
    let reason = null
    try {
      const response = await fetch('dashboard/events', { headers: headers(), cache: 'no-store', signal: own.signal })
      if (response.status === 403) return ask(token ? 'The server refuses this token.' : '')
      if (response.ok) { pause = 1000; await read(response) } else reason = await response.text()
    } catch { /* the connection has failed: once more below */ }
    if (own.signal.aborted) return
    lose(reason)
    await new Promise(done => setTimeout(done, pause))
    pause = Math.min(pause * 2, 10_000)
  }
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) stream?.abort()
  else if ($('login').hidden) watch()
})
setInterval(() => {
  if (!heard || document.hidden || !$('login').hidden || Date.now() - heard <= SILENT) return
  lose()
  // A connection that a firewall has forgotten brings no error.
  if (Date.now() - tried > RETRY) watch()
}, 1000)
watch()
