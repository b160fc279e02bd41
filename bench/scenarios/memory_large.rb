# frozen_string_literal: true

# The same with much more code.
Bench::Scenario.define(
  "memory-large",
  about: "A generated application with the code of 60 gems (bench/harness/large_site.rb): memory of all processes (PSS) after 0, 200, 2,000 " \
         "and 20,000 requests.",
  contents: ->(_server) { Bench::LargeSite.files },
  only: Bench::Drive::Memory::SERVERS,
  drive: Bench::Drive::Memory.new(pages: Bench::LargeSite.pages),
  arguments: { "fairlead-warm-up" => Bench::LargeSite.pages.first(50).flat_map { |page| ["--warm-up", page.path] } },
  memory: true,
  shapes: %w[2x5:10 8x3:24],
  metrics: %i[
    pss_start pss_few pss_warm pss_warm_vs_puma pss_warm_vs_warmup pss_long pss_long_vs_puma pss_long_vs_warmup pss_workers errors
  ],
  plots: %w[memory]
)
