# frozen_string_literal: true

# Memory that the processes of a server share, and stop sharing while they serve.
page = ->(weight, path, **more) { Bench::Drive::Pages::Page.new(weight: weight, name: "page", verb: "GET", path: path, **more) }
pages = [
  page.call(285, "/notes"),
  page.call(285, "/notes/7"),
  page.call(142, "/list"),
  page.call(190, "/json"),
  page.call(48, "/notes", verb: "POST", fields: { "note[title]" => "New", "note[body]" => "Created by a form" })
]

Bench::Scenario.define(
  "memory",
  about: "The application of `rails`, without its reports: memory of all processes (PSS) after 0, 200, 2,000 and 20,000 requests.",
  contents: ->(server) { Bench::RailsSite.for(server) },
  only: Bench::Drive::Memory::SERVERS,
  gem: %w[rails sqlite3 bundler],
  drive: Bench::Drive::Memory.new(pages: pages, form: "/notes/new"),
  arguments: { "fairlead-warm-up" => %w[/notes /notes/7 /notes/new /list /json].flat_map { |path| ["--warm-up", path] } },
  memory: true,
  shapes: %w[2x5:10 8x3:24],
  metrics: %i[
    pss_start pss_few pss_warm pss_warm_vs_puma pss_warm_vs_warmup pss_long pss_long_vs_puma pss_long_vs_warmup pss_workers errors
  ],
  plots: %w[memory]
)
