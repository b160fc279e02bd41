// Makes and updates elements. No text of the server becomes HTML.
'use strict'

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
