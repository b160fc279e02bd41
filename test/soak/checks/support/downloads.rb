# frozen_string_literal: true

# What the checks of downloads share: bench/apps/files.ru with a file of some size, and the ways to have it sent.
module Downloads
  SHORT = "/short"
  WAYS = { app: "/file", to_path: "/to_path", sendfile: "/sendfile", public: "/large.bin" }.freeze
  VARIANTS = %w[fairlead fairlead-sendfile fairlead-public].freeze

  module_function

  def scenario(name, bytes)
    Bench::Scenario.new(
      name,
      about: "A short answer at /short and a file of #{bytes} bytes, sent in several ways.",
      app: File.read(File.join(Bench::ROOT, "bench/apps/files.ru")),
      files: { "public/large.bin" => bytes },
      ways: WAYS,
      shapes: [],
      metrics: []
    )
  end

  # Fairlead in each way it can send a file, or the other server that was asked for.
  def each_server(check)
    names = check.server.name == "fairlead" ? VARIANTS : [check.server.name]
    names.each { |name| yield Bench::Server.named(name) }
  end
end
