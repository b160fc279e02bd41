// Ten minutes of a few figures: lines or stacked areas, their present values, and a table for those who cannot see them.
'use strict'

// A point, one for each second, is a list. These are its indexes.
const [AT, RATE, P50, P95, P99, QUEUE, ROOM, LOCK] = [0, 1, 2, 3, 4, 5, 6, 7]
const POINTS = 600

class Chart {
  // series: [name, index in a point, class]; format: text of a value; least: the lowest upper end of the axis;
  // kind: lines, stacked, or logarithmic, where the median is not a flat line below rare outliers.
  constructor(figure, series, format, least, kind) {
    const stacked = kind === 'stacked'
    Object.assign(this, { figure, series, format, least, stacked, isLogarithmic: kind === 'logarithmic', cursor: null, points: [] })
    this.title = figure.querySelector('figcaption').textContent
    this.svg = shape('svg', { viewBox: '0 0 600 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' })
    this.top = element('output', { 'aria-hidden': 'true' })
    this.bottom = element('output', { 'aria-hidden': 'true', class: 'bottom' })
    this.values = series.map(() => element('b'))
    this.when = element('li')
    const legend = element('ul', { class: 'legend' }, ...series.map(([name, , style], i) => {
      const sample = stacked
        ? shape('rect', { width: 20, height: 10, class: `area ${style}` })
        : shape('path', { d: 'M0 5H20', class: `line ${style}` })
      return element('li', {}, shape('svg', { viewBox: '0 0 20 10', 'aria-hidden': 'true' }, sample), `${name} `, this.values[i])
    }), this.when)
    const plot = element('div', { class: 'plot', tabindex: 0, role: 'group',
      'aria-label': `${this.title}, the last ten minutes; left and right arrow show earlier values` }, this.svg, this.top, this.bottom)
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
    const values = sums.flat().filter(value => value != null)
    const highest = roundUp(Math.max(this.least, ...values))
    const lowest = this.isLogarithmic ? Math.min(highest / 10, 10 ** Math.floor(Math.log10(Math.max(1e-4, Math.min(highest, ...values))))) : 0
    const share = this.isLogarithmic
      ? value => Math.max(0, Math.log(value / lowest) / Math.log(highest / lowest))
      : value => value / highest
    const y = value => 100 - share(value) * 88
    const children = [shape('path', { class: 'grid', d: this.grid(lowest, highest).map(value => `M0 ${y(value)}H600`).join('') })]
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
    write(this.bottom, lowest ? this.format(lowest) : '')
  }

  // Values with a line: the upper end, and its half or the powers of ten.
  grid(lowest, highest) {
    if (!this.isLogarithmic) return [highest, highest / 2]
    const powers = []
    for (let power = lowest * 10; power < highest * 0.99; power *= 10) powers.push(power)
    return [highest, ...powers]
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
