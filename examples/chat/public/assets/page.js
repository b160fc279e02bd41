// The two parts of the page that change: the log of messages and the list of people. What people wrote goes in as text,
// never as HTML.

const KEPT = 500          // entries of the log
const SAME_BREATH = 180_000 // ms within which messages of one person stand together
const BACK_SOON = 2_500   // ms within which somebody who is back (a reload, another connection) has not left

export class Log {
  #list
  #newest
  #following = true // the end is in view, and is to stay there
  #messages = new Map() // author and key → article

  constructor(list, newest) {
    this.#list = list
    this.#newest = newest
    newest.addEventListener('click', () => this.#toEnd())
    list.addEventListener('scroll', () => this.#scrolled(), { passive: true })
    new ResizeObserver(() => { if (this.#following) this.#toEnd() }).observe(list)
  }

  // +state+: undefined for a message that has arrived, else what is to be said below it. A message that is there already
  // (sent twice to be sure, or waiting until now) is only brought up to date.
  message({ from, key, text, at, mine, state, again }) {
    const id = mine ? `mine ${key}` : `${from.id} ${key}`
    const known = this.#messages.get(id)
    if (known?.dataset.state === 'arrived') return
    if (known && !state) return this.#arrive(known)
    const article = this.#article({ from, text, at, mine, state, again })
    article.dataset.id = id
    this.#messages.set(id, article)
    if (known) this.#replace(known, article)
    else this.#append(article, mine)
  }

  notice(text) {
    this.#append(element('p', { className: 'notice', dir: 'auto' }, text))
  }

  clear() {
    this.#list.replaceChildren()
    this.#messages.clear()
    this.#newest.hidden = true
  }

  #article({ from, text, at, mine, state, again }) {
    const time = new Date(at)
    const article = element('article', { className: mine ? 'message mine' : 'message' },
      avatar(from),
      element('p', { className: 'by' },
        element('bdi', {}, from.name),
        element('time', { dateTime: time.toISOString() }, time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }))),
      element('p', { className: 'text', dir: 'auto' }, text))
    if (state) article.append(element('p', { className: 'state' }, state))
    if (again) article.append(element('button', { type: 'button', className: 'quiet', onclick: again }, 'Send again'))
    Object.assign(article.dataset, { state: state ? 'waiting' : 'arrived', author: from.id, at })
    return article
  }

  // It goes where the others see it. One that is the last anyway stays, so that nobody hears it read a second time.
  #arrive(article) {
    article.dataset.state = 'arrived'
    article.querySelectorAll('.state, button').forEach(part => part.remove())
    if (article !== this.#list.lastElementChild) this.#append(article)
  }

  #replace(known, article) {
    article.classList.toggle('more', known.classList.contains('more'))
    known.replaceWith(article)
    if (this.#following) this.#toEnd()
  }

  #append(entry, show = false) {
    const last = this.#list.lastElementChild
    const same = entry.dataset.author && last?.dataset.author === entry.dataset.author
    entry.classList.toggle('more', Boolean(same) && entry.dataset.at - last.dataset.at < SAME_BREATH)
    this.#list.append(entry)
    while (this.#list.childElementCount > KEPT) this.#drop(this.#list.firstElementChild)
    if (show || this.#following) this.#toEnd()
    else if (entry.dataset.author) this.#newest.hidden = false
  }

  #drop(entry) {
    this.#messages.delete(entry.dataset.id)
    entry.remove()
  }

  #scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.#list
    this.#following = scrollHeight - scrollTop - clientHeight < 48
    if (this.#following) this.#newest.hidden = true
  }

  #toEnd() {
    this.#following = true
    this.#list.scrollTop = this.#list.scrollHeight
    this.#newest.hidden = true
  }
}

// Draws who is here, and tells +notice+ who has come and gone.
export class People {
  #list
  #count
  #notice
  #here = new Map()    // id → name
  #leaving = new Map() // id → timer

  constructor(list, count, notice) {
    this.#list = list
    this.#count = count
    this.#notice = notice
  }

  // +me+: the id of this window's person, who came in +since+. It depends on the worker how soon all who were here already
  // are known, so it is the time that says who came later.
  show(people, { id: me, since }) {
    const before = this.#here
    this.#here = new Map(people.map(({ id, name }) => [id, name]))
    this.#count.textContent = people.length
    this.#list.replaceChildren(...people.map(person => this.#person(person, me)))
    for (const { id, name, at } of people) if (id !== me && !before.has(id)) this.#came(id, name, at > since)
    for (const [id, name] of before) if (id !== me && !this.#here.has(id)) this.#went(id, name)
  }

  clear() {
    this.#leaving.forEach(clearTimeout)
    this.#leaving.clear()
    this.#here = new Map()
    this.#list.replaceChildren()
    this.#count.textContent = 0
  }

  #person(person, me) {
    return element('li', { title: `${person.name}, in worker ${person.worker}` },
      avatar(person),
      element('bdi', {}, person.name),
      person.id === me ? element('span', { className: 'you' }, 'you') : '',
      element('span', { className: 'worker' }, `worker ${person.worker}`))
  }

  #came(id, name, later) {
    const leaving = this.#leaving.get(id)
    clearTimeout(leaving)
    this.#leaving.delete(id)
    if (!leaving && later) this.#notice(`${name} came in`)
  }

  #went(id, name) {
    clearTimeout(this.#leaving.get(id))
    this.#leaving.set(id, setTimeout(() => {
      this.#leaving.delete(id)
      this.#notice(`${name} left`)
    }, BACK_SOON))
  }
}

function avatar({ id, name }) {
  const initials = name.split(/\s+/).slice(0, 2).map(word => [...word][0]).join('')
  const span = element('span', { className: 'avatar', ariaHidden: 'true' }, initials.toUpperCase())
  span.style.setProperty('--hue', parseInt(id.slice(0, 6), 16) % 24 * 15)
  return span
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}
