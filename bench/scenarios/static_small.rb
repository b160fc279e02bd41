# frozen_string_literal: true

# Small files of a folder: their cost when the server responds by itself, also while Ruby is busy all the time.
Bench::Scenario.define(
  "static-small",
  about: "A file of 1 KiB from a folder that the server serves by itself; `fairlead-busy` means that no Ruby thread is free.",
  app: <<~RUBY,
    BURNING = File.expand_path("burning", __dir__)
    run(lambda do |env|
      if env["PATH_INFO"] == "/burn"
        File.open(BURNING, File::WRONLY | File::APPEND) { |file| file.syswrite("x") }
        100_000.times { nil } while File.exist?(BURNING)
      end
      [200, { "content-type" => "text/plain" }, ["ready\\n"]]
    end)
  RUBY
  answer_bytes: 1024,
  files: { "public/small.txt" => 1024 },
  ways: { public: "/small.txt" },
  burns: true,
  shapes: %w[2x2 2x2:100],
  metrics: %i[rate spread vs_nginx vs_calm p50 p99 p99c fairness cpu memory errors]
)
