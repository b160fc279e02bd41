// Shows the ticks of the server. The browser's own EventSource does the rest: it reconnects when the stream ends, after
// the time the server has asked for, and tells the server the id of the last event it has seen.

const GIVEN_UP = 3_000 // ms until the next try after an answer that makes a browser give up, such as 503

const $ = id => document.getElementById(id)
const marks = draw('seconds', 60, i => line(i * 6, i % 5 ? 97 : 95, 100))
draw('hours', 12, i => line(i * 30, 82, 89))

let last = null   // second of the last tick
let missed = 0

function listen() {
  const stream = new EventSource('ticks')
  stream.onopen = () => show('open', 'Connected')
  stream.onerror = () => {
    show('waiting', 'Connection lost, the browser tries again by itself')
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, GIVEN_UP)
  }
  stream.addEventListener('hello', event => hello(JSON.parse(event.data)))
  stream.addEventListener('tick', event => tick(Number(event.lastEventId)))
}

function hello({ worker, last }) {
  $('worker').textContent = worker
  $('resumed').textContent = last ?? '–'
}

function tick(second) {
  if (last !== null) {
    for (let lost = Math.max(last + 1, second - 59); lost < second; lost++) mark(lost, 'missed')
    missed += Math.max(0, second - last - 1)
  }
  mark(second, 'came')
  last = second
  $('last').textContent = second
  $('missed').textContent = missed
  turn(new Date(second * 1000))
}

// Colours the mark of a second and clears the next one, which is a minute old.
function mark(second, state) {
  marks[second % 60].dataset.state = state
  marks[(second + 1) % 60].dataset.state = ''
}

// The angles grow all day long, so that no hand ever runs backwards but at midnight.
function turn(time) {
  const seconds = time.getHours() * 3600 + time.getMinutes() * 60 + time.getSeconds()
  $('second').style.rotate = `${seconds * 6}deg`
  $('minute').style.rotate = `${seconds / 10}deg`
  $('hour').style.rotate = `${seconds / 120}deg`
  const text = $('time').firstElementChild
  text.textContent = time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false })
  text.dateTime = time.toISOString()
  $('hands').dataset.set = ''
}

function show(state, text) {
  $('state').dataset.state = state
  if ($('state-text').textContent !== text) $('state-text').textContent = text
}

function draw(group, count, make) {
  const lines = Array.from({ length: count }, (_, i) => make(i))
  $(group).append(...lines)
  return lines
}

function line(degrees, from, to) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', 'line')
  made.setAttribute('y1', -from)
  made.setAttribute('y2', -to)
  made.setAttribute('transform', `rotate(${degrees})`)
  return made
}

listen()
