# frozen_string_literal: true

# Code shared by the checks of downloads: bench/apps/files.ru with a file of some size, and the ways of sending it.
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

  # Yields Fairlead in each way of sending a file, or the given other server.
  def each_server(check)
    names = check.server.name == "fairlead" ? VARIANTS : [check.server.name]
    names.each { |name| yield Bench::Server.named(name) }
  end
end
