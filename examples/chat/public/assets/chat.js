// The page: lets somebody in, keeps one Link to the room, and brings what arrives to the log and the list of people.

import { Link } from './link.js'
import { Notes, randomKey } from './notes.js'
import { Log, People } from './page.js'

const LONGEST = 2_000   // characters of a message, as the server has it
const UNSENT = 20       // messages that may wait for a connection
const SILENCE = 10_000  // ms after which a connection that has not brought a message back is given up

const $ = id => document.getElementById(id)
const log = new Log($('log'), $('newest'))
const people = new People($('people'), $('people-count'), text => log.notice(text))
const visitor = JSON.parse(sessionStorage.getItem('chat') ?? '{}') // name, key and room of this window
let link, notes, me, countdown
let unread = 0

function enter(name, room) {
  Object.assign(visitor, { name, room, key: visitor.key ?? randomKey() })
  sessionStorage.setItem('chat', JSON.stringify(visitor))
  localStorage.setItem('chat:name', name)
  history.replaceState(null, '', `#${room}`)
  $('room-name').textContent = room
  showTitle()
  $('door').hidden = true
  $('chat').hidden = false
  notes = new Notes(room)
  $('draft').value = notes.draft
  checkDraft()
  connect()
  $('draft').focus()
}

function leave() {
  link?.close()
  link = me = null
  clearInterval(countdown)
  log.clear()
  people.clear()
  delete visitor.room
  sessionStorage.setItem('chat', JSON.stringify(visitor))
  knock()
}

// Asks for a name and a room.
function knock() {
  $('chat').hidden = true
  $('door').hidden = false
  document.title = 'Chat'
  $('name').value = visitor.name ?? localStorage.getItem('chat:name') ?? ''
  $('room').value = isRoom(roomInAddress()) ? roomInAddress() : 'lobby'
  $($('name').value ? 'room' : 'name').focus()
}

function connect() {
  const { room, name, key } = visitor
  const url = new URL(`socket?${new URLSearchParams({ room, name, key })}`, location.href.split('#')[0])
  url.protocol = url.protocol.replace('http', 'ws')
  link = new Link(url)
  link.addEventListener('state', ({ detail }) => showLink(detail))
  link.addEventListener('message', ({ detail }) => receive[detail.type]?.(detail))
  link.start()
}

const receive = {
  welcome({ id, at, worker }) {
    if (!me) log.notice(`You are in #${visitor.room}. Nothing said here is stored.`)
    me = { id, name: visitor.name, since: me?.since ?? at }
    $('chat').dataset.worker = worker
    $('link-text').textContent = `Connected to worker ${worker}`
    for (const [key, text] of notes.unsent) transmit(key, text)
  },

  people: news => people.show(news.people, me),

  message(message) {
    const mine = message.from.id === me?.id
    if (mine) notes.remove(message.key)
    else if (document.hidden) showTitle(unread + 1)
    log.message({ ...message, mine })
  },

  refused({ key, why }) {
    const text = notes.unsent.get(key)
    notes.remove(key)
    const again = () => {
      say(text, key)
      $('draft').focus()
    }
    if (text) log.message({ from: me, key, text, at: Date.now(), mine: true, state: why, again })
  }
}

function showLink({ state, until }) {
  clearInterval(countdown)
  $('link').dataset.state = state
  $('retry').hidden = state !== 'waiting'
  if (state === 'connecting') $('link-text').textContent = 'Connecting…'
  if (state === 'open') announce('Connected.')
  if (state === 'waiting') {
    announce('The connection is lost. This page tries again by itself.')
    const tick = () => {
      $('link-text').textContent = `Connection lost, next try in ${Math.max(1, Math.ceil((until - Date.now()) / 1000))} s`
    }
    countdown = setInterval(tick, 250)
    tick()
  }
}

function showTitle(count = 0) {
  unread = count
  document.title = count ? `(${count}) #${visitor.room}` : `#${visitor.room}`
}

// For those who hear the page: a change once, not each second of a countdown.
function announce(text) {
  if ($('announcer').textContent !== text) $('announcer').textContent = text
}

function say(text, key = randomKey()) {
  notes.add(key, text)
  transmit(key, text)
}

// Shows the message as waiting until it comes back from the server; what does not come back is sent again with the next
// connection, under the same key, so that nobody sees it twice.
function transmit(key, text) {
  const from = me ?? { id: '000000', name: visitor.name }
  log.message({ from, key, text, at: Date.now(), mine: true, state: 'On its way…' })
  const used = link
  used.send({ key, text })
  setTimeout(() => { if (link === used && notes.unsent.has(key) && $('link').dataset.state === 'open') used.drop() }, SILENCE)
}

// Returns whether the draft can be sent, and says what is in the way.
function checkDraft() {
  const length = [...$('draft').value.trim()].length
  const left = LONGEST - length
  const full = notes.unsent.size >= UNSENT
  $('hint').textContent =
    left < 0 ? `This is ${-left} ${left === -1 ? 'character' : 'characters'} too long. How about two messages?` :
    full ? `${UNSENT} messages are waiting for a connection already. Your draft is kept.` :
    left < 200 ? `${left} characters left` : ''
  $('hint').classList.toggle('problem', left < 0 || full)
  $('draft').setAttribute('aria-invalid', left < 0)
  return length > 0 && left >= 0 && !full
}

function submitDraft(event) {
  event.preventDefault()
  if (checkDraft()) {
    say($('draft').value.trim())
    $('draft').value = notes.draft = ''
    checkDraft()
  }
  $('draft').focus()
}

function roomInAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1))
  } catch {
    return ''
  }
}

// As the server has it.
function isRoom(text) {
  return /^[\p{L}\p{N}_-]{1,32}$/u.test(text)
}

$('room').addEventListener('input', () => {
  $('room').setCustomValidity(isRoom($('room').value) ? '' : 'Letters, digits and dashes, please, and no more than 32.')
})
$('enter').addEventListener('submit', event => {
  event.preventDefault()
  const name = $('name').value.trim()
  if (name) enter(name, $('room').value)
})
$('leave').addEventListener('click', leave)
$('retry').addEventListener('click', () => link.retry())
$('composer').addEventListener('submit', submitDraft)
$('draft').addEventListener('input', () => {
  notes.draft = $('draft').value
  checkDraft()
})
$('draft').addEventListener('keydown', event => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submitDraft(event)
})
document.addEventListener('visibilitychange', () => {
  if (visitor.room && !document.hidden) showTitle()
})
addEventListener('hashchange', () => {
  const room = roomInAddress()
  if (room === visitor.room) return
  const inside = visitor.room
  leave()
  if (inside && isRoom(room)) enter(visitor.name, room)
})

if (visitor.room) enter(visitor.name, visitor.room)
else knock()
