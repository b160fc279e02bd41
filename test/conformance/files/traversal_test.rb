# frozen_string_literal: true

require "test_helper"
require "support/http_client"
require "uri"
require_relative "nginx"
require_relative "traversal"

# wfuzz's lists of traversal payloads against a folder with and without an application behind it, and against nginx for
# comparison.
class TraversalTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include StaticFiles

  APP = <<~RUBY
    require "rack/lint"
    use Rack::Lint
    run ->(_env) { [200, { "content-type" => "text/plain" }, ["the application"]] }
  RUBY

  SERVERS = { "Fairlead" => nil, "Fairlead before an application" => APP }.freeze

  SERVERS.each_key do |name|
    define_method("test_no_payload_leads_out_of_the_folder_of_#{name.downcase.tr(" ", "_")}") do
      run = runs.fetch(name)

      assert_empty run.hits
      assert_equal run.total, run.count(200..499), run.statuses
      assert_operator run.total, :>, 7_500
    end
  end

  def test_the_judgement_finds_what_a_careless_server_gives_away
    skip Traversal.unavailable if Traversal.unavailable

    run = Dir.mktmpdir("fairlead-traversal-") { |directory| careless(Traversal.create(directory)) }

    assert_operator run.hits.size, :>, 200
    ["/../canary.txt", "/css/../../canary.txt", "/%2e%2e%2fcanary.txt"].each { |target| assert_includes run.hits, target }
    assert_equal run.hits.size, run.count(200)
  end

  DOCUMENT = File.join(ROOT, "docs/conformance.md")
  BLOCK = %r{(?<=<!-- conformance:traversal -->\n).*?(?=<!-- /conformance -->)}m

  # UPDATE_DOCS=1 writes the table in the documentation; any other run compares it.
  def test_the_documentation_has_these_figures
    skip "nginx is not installed" unless Nginx.program

    rows = runs.map do |name, run|
      counts = [200..299, 300..399, 400, 401..499, 500..].map { |range| run.count(range) }
      "| #{[name, run.total, run.hits.size, *counts].join(" | ")} |\n"
    end
    table = "| server | requests | hits | 2xx | 3xx | 400 | other 4xx | 5xx |\n|---|--:|--:|--:|--:|--:|--:|--:|\n#{rows.join}"
    text = File.read(DOCUMENT)
    File.write(DOCUMENT, text.sub(BLOCK) { table }) if ENV["UPDATE_DOCS"]

    assert_equal table, File.read(DOCUMENT)[BLOCK]
  end

  private

  RUNS = {} # rubocop:disable Style/MutableConstant
  private_constant :RUNS

  # Server name => Run; run once for all tests.
  def runs
    skip Traversal.unavailable if Traversal.unavailable

    if RUNS.empty?
      SERVERS.each { |name, app| RUNS[name] = fairlead(app) }
      RUNS["nginx"] = nginx if Nginx.program
    end
    RUNS
  end

  # Runs Fairlead. Afterwards it must still serve its folder, and have logged nothing but refusals.
  def fairlead(app)
    server = launch(app, "--public", Traversal::FOLDER) do |new|
      Traversal.create(new.directory)
      new.start
    end
    run = Traversal::Run.new(Traversal.targets) { TCPSocket.new("127.0.0.1", server.port) }
    assert_equal 200, get(server, "/css/site.css").status
    assert_empty server.stderr.lines.grep_v(/\Arefused 400 /)
    run
  end

  # A server that decodes the path and opens the file with that name: a bad example.
  def careless(folder)
    listener = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { answer_carelessly(listener.accept, folder) } }
    Traversal::Run.new(Traversal.targets) { TCPSocket.new("127.0.0.1", listener.local_address.ip_port) }
  ensure
    thread&.kill&.join
    listener&.close
  end

  def answer_carelessly(socket, folder)
    path = File.join(folder, URI.decode_www_form_component(socket.gets("\r\n\r\n")[/ (.*) /, 1].b))
    found = File.file?(path) && File.binread(path)
  rescue ArgumentError, SystemCallError
    found = nil
  ensure
    socket.write("HTTP/1.1 #{found ? 200 : 404} \r\n\r\n#{found}")
    socket.close
  end

  def nginx
    Dir.mktmpdir("fairlead-traversal-") do |directory|
      nginx = Nginx.new(Traversal.create(directory))
      Traversal::Run.new(Traversal.targets) { nginx.connect }
    ensure
      nginx&.stop
    end
  end
end
