# frozen_string_literal: true

# Is the cost of a request's parts in proportion to them?
requests = lambda do |name, things, counts, servers: %w[fairlead puma iodine nginx], ways: { app: "/", public: "/short" }, &parts|
  Bench::Scenario.define(
    "growth-#{name}",
    about: "Requests with n #{things}, on one connection: CPU time of one.",
    app: File.read(File.join(Bench::ROOT, "bench/apps/growth.ru")),
    drive: Bench::Drive::Growth.new(Bench::Growth::Requests.new("request with n #{things}, µs", &parts), things: things, counts: counts),
    ways: ways,
    only: servers,
    shapes: %w[1x5:1],
    metrics: [],
    plots: %w[growth]
  )
end

requests.call("fields", "header fields", [1, 10, 90]) { |count| { fields: Array.new(count) { |index| ["x-#{index}", "value"] }.to_h } }
requests.call("cookies", "bytes of cookies", [10, 100, 1000, 7000]) { |count| { fields: { "cookie" => "c=#{"x" * count}" } } }
requests.call("queries", "bytes in the query", [10, 100, 1000, 7000]) { |count| { query: "q=#{"x" * count}" } }
# nginx would look for a file of that name.
requests.call("paths", "bytes in the path", [10, 100, 1000, 7000], servers: %w[fairlead puma iodine]) { |count| { path: "/#{"x" * count}" } }
requests.call("uploads", "bytes in the body", [10, 100, 1000, 10_000, 100_000, 1_000_000]) { |count| { body: "x" * count } }
requests.call("chunks", "chunks of 10 bytes in the body", [10, 100, 1000]) { |count| { chunks: Array.new(count, "x" * 10) } }
requests.call("parts", "parts of a form in the body, which the application reads", [1, 10, 100, 1000], servers: %w[fairlead puma iodine],
                                                                                          ways: { app: "/parts" }) do |count|
  part = ->(index) { "--b\r\ncontent-disposition: form-data; name=\"f#{index}\"\r\n\r\nvalue\r\n" }
  { form: "#{Array.new(count, &part).join}--b--\r\n" }
end
