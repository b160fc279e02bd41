// Numbers as texts.
'use strict'

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

// The times of responses are known from this time on.
const SHORTEST = 0.005

const latency = seconds => seconds === SHORTEST ? `< ${time(seconds)}` : time(seconds)

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
