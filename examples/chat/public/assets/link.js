// A WebSocket that comes back by itself: after half a second, then after twice as long each time, up to 15 seconds, and
// never at a time that all pages have in common. It says what it does in events:
//
//   "state"    detail.state is "connecting", "open" or "waiting"; when waiting, detail.until is the time of the next try
//   "message"  detail is the parsed JSON

const FIRST = 500
const LONGEST = 15_000
const STEADY = 5_000 // a connection that lasted so long was a good one: the next wait is short again

export class Link extends EventTarget {
  #url
  #socket = null
  #timer = null
  #failures = 0
  #online = () => this.retry()

  constructor(url) {
    super()
    this.#url = url
  }

  start() {
    addEventListener('online', this.#online)
    this.#connect()
  }

  // Sends if it can. Whether something has arrived, only an answer can say.
  send(value) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(value))
  }

  // Does not wait any longer for the next try.
  retry() {
    if (this.#timer) this.#connect()
  }

  // Gives a connection up that seems to be dead.
  drop() {
    this.#forget()
    this.#wait()
  }

  close() {
    removeEventListener('online', this.#online)
    clearTimeout(this.#timer)
    this.#timer = null
    this.#forget()
  }

  #connect() {
    clearTimeout(this.#timer)
    this.#timer = null
    this.#tell('connecting')
    const socket = this.#socket = new WebSocket(this.#url)
    let opened = Infinity
    socket.onopen = () => {
      opened = Date.now()
      this.#tell('open')
    }
    socket.onmessage = ({ data }) => {
      this.dispatchEvent(new CustomEvent('message', { detail: JSON.parse(data) }))
    }
    socket.onclose = () => {
      if (Date.now() - opened > STEADY) this.#failures = 0
      this.#wait()
    }
  }

  #wait() {
    const longest = Math.min(LONGEST, FIRST * 2 ** this.#failures++)
    const delay = longest * (0.5 + Math.random() / 2)
    this.#socket = null
    this.#timer = setTimeout(() => this.#connect(), delay)
    this.#tell('waiting', Date.now() + delay)
  }

  #forget() {
    if (!this.#socket) return
    this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null
    this.#socket.close()
    this.#socket = null
  }

  #tell(state, until) {
    this.dispatchEvent(new CustomEvent('state', { detail: { state, until } }))
  }
}
