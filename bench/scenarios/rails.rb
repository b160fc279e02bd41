# frozen_string_literal: true

# The view of a Rails application's users, on any server: pages that query, render and create, with and without
# CPU-bound reports among them.
page = ->(weight, path, **more) { Bench::Drive::Pages::Page.new(weight: weight, name: "page", verb: "GET", path: path, **more) }
pages = [
  page.call(285, "/notes"),
  page.call(285, "/notes/7"),
  page.call(142, "/list"),
  page.call(190, "/json"),
  page.call(48, "/notes", verb: "POST", fields: { "note[title]" => "New", "note[body]" => "Created by a form" })
]
report = Bench::Drive::Pages::Page.new(weight: 50, name: "report", verb: "GET", path: "/report")

Bench::Scenario.define(
  "rails",
  about: "An application from `rails new` with a scaffold and SQLite, in production: 30 % of the requests list 20 notes, 30 % show one, " \
         "15 % render a partial for each of 100, 20 % are JSON, 5 % create a note with a form; in a second mix 5 % of all requests are " \
         "a report that computes for 200 ms.",
  contents: ->(server) { Bench::RailsSite.for(server) },
  only: %w[fairlead fairlead-no-slices puma],
  drive: Bench::Drive::Pages.new(mixes: { "pages" => pages, "pages and reports" => [*pages, report] }, form: "/notes/new"),
  shapes: ["2x3:20 pages", "2x5:20 pages", "2x3:20 pages and reports", "2x5:20 pages and reports"],
  slices: true,
  gem: %w[rails sqlite3 bundler],
  metrics: %i[rate spread vs_puma p50 p95 p99 p99_vs_puma max beside_rate beside_p50 beside_p99 cpu memory memory_vs_puma errors],
  plots: %w[rate latency]
)
