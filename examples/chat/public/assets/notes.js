// What one window remembers of one room, also when it is reloaded: the draft, and the messages that were written but have
// not come back from the server yet. A message has arrived when it does.

export class Notes {
  #key

  constructor(room) {
    this.#key = `chat:${room}`
    this.unsent = new Map(this.#stored().unsent ?? [])
  }

  get draft() {
    return this.#stored().draft ?? ''
  }

  set draft(text) {
    this.#store({ draft: text })
  }

  add(key, text) {
    this.unsent.set(key, text)
    this.#store({ unsent: [...this.unsent] })
  }

  remove(key) {
    if (this.unsent.delete(key)) this.#store({ unsent: [...this.unsent] })
  }

  #stored() {
    return JSON.parse(sessionStorage.getItem(this.#key) ?? '{}')
  }

  #store(changes) {
    sessionStorage.setItem(this.#key, JSON.stringify({ ...this.#stored(), ...changes }))
  }
}

// A number nobody can guess. (crypto.randomUUID exists on https and localhost only.)
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), byte => byte.toString(16).padStart(2, '0')).join('')
}
