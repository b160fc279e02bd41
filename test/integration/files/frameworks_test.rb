# frozen_string_literal: true

require "test_helper"
require "support/byte_ranges"
require "support/file_serving"
require "support/needed_gems"

# Files from frameworks: unchanged Rack::Sendfile and Rack::Files, `send_file` of Sinatra and Rails, and bodies with a path.
# With a root the server sends them; without one the response is the same.
class FrameworkFilesTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::NeededGems

  FILES = { "files/page.txt" => "page", "files/large.bin" => Random.new(7).bytes(2_000_000) }.freeze
  ROOT = ["--sendfile-root", "files"].freeze

  RACK = <<~RUBY
    require "rack"
    require "rack/files"
    require "rack/sendfile"
    use Rack::Lint
    use Rack::Sendfile
    run Rack::Files.new("files")
  RUBY

  # Only the server's own responses have this field: Rack::Files sets no etag.
  def test_rack_files_behind_rack_sendfile
    client = connect(serve_folder(FILES, *ROOT, app: RACK))

    FILES.each do |path, content|
      answer = client.get(path.delete_prefix("files"))
      assert_equal [200, content.b, LONG_AGO_HTTP], [answer.status, answer.body, answer["last-modified"]]
      assert_match(/\A"[^"]+"\z/, answer["etag"])
      assert_nil answer["x-sendfile"]
    end
    assert_equal 304, client.get("/page.txt", "if-none-match" => client.get("/page.txt")["etag"]).status
    assert_equal 404, client.get("/missing").status
    assert_equal 404, client.get("/..%2fconfig.ru").status
  end

  def test_rack_files_with_ranges
    [ROOT, []].each do |arguments|
      client = connect(serve_folder(FILES, *arguments, app: RACK))
      answer = client.get("/large.bin", "range" => "bytes=10-1999989")

      assert_equal [206, FILES["files/large.bin"][10..-11], "bytes 10-1999989/2000000"], [answer.status, answer.body, answer["content-range"]]
      assert_equal 416, client.get("/page.txt", "range" => "bytes=4-").status
      head = client.request("HEAD", "/page.txt").answer(to: "HEAD")
      assert_equal [200, "4", ""], [head.status, head["content-length"], head.body]
    end
  end

  def test_a_client_cannot_choose_how_files_are_sent
    client = connect(serve_folder(FILES, *ROOT, app: RACK))

    [{ "x-sendfile-type" => "X-Accel-Redirect", "x-accel-mapping" => "/=/etc/" }, { "x-sendfile-type" => "X-Lighttpd-Send-File" }].each do |fields|
      answer = client.get("/page.txt", fields)
      assert_equal [200, "page"], [answer.status, answer.body]
      assert_empty(answer.fields.map(&:first).grep(/\Ax-/))
    end
  end

  def test_a_body_with_a_path_is_sent_from_the_file
    app = 'run ->(env) { [200, eval(env["HTTP_X_FIELDS"] || "{}"), File.open(File.join("files", env["PATH_INFO"]), "rb")] }'
    client = connect(serve_folder(FILES, app: app))
    large = FILES["files/large.bin"]

    assert_equal large, client.get("/large.bin").body
    answer = client.get("/large.bin", "range" => "bytes=-5")
    assert_equal [206, large[-5..], "bytes 1999995-1999999/2000000"], [answer.status, answer.body, answer["content-range"]]
    assert_equal 416, client.get("/large.bin", "range" => "bytes=2000000-").status
    assert_equal %w[pa ge], Fairlead::Test::ByteRanges.parts(client.get("/page.txt", "range" => "bytes=0-1,2-3")).map(&:text)
    assert_equal 304, client.get("/page.txt", "x-fields" => "{ 'etag' => '\"a\"' }", "if-none-match" => '"a"').status
    assert_equal 412, client.get("/page.txt", "x-fields" => "{ 'etag' => '\"a\"' }", "if-match" => '"b"').status
    assert_equal ["2000000", ""], client.request("HEAD", "/large.bin").answer(to: "HEAD").then { |head| [head["content-length"], head.body] }
  end

  def test_a_body_with_a_path_that_the_application_has_cut_itself
    app = <<~'RUBY'
      run ->(_) { [206, { "content-range" => "bytes 0-3/4", "content-length" => "4" }, File.open("files/page.txt", "rb")] }
    RUBY
    answer = get(serve_folder(FILES, app: app), "/", "range" => "bytes=1-2")

    assert_equal [206, "page", "bytes 0-3/4"], [answer.status, answer.body, answer["content-range"]]
  end

  def test_a_body_whose_path_leads_nowhere
    app = <<~'RUBY'
      class Body
        def initialize(path) = @path = path
        def to_path = @path
        def each = yield("by each")
        def close = File.write("closed", "")
      end
      run ->(env) { [200, {}, Body.new(env["HTTP_X_PATH"])] }
    RUBY
    server = serve_folder(FILES, app: app)
    File.mkfifo(server.path("fifo"))

    ["nowhere", "fifo", "files", "/dev/null/x"].each do |path|
      assert_equal [200, "by each"], get(server, "/", "x-path" => path).then { |answer| [answer.status, answer.body] }, path
    end
    assert_equal "page", get(server, "/", "x-path" => "files/page.txt").body
    wait_until("a closed body") { File.exist?(server.path("closed")) }
  end

  # Uploads in Rails and Sinatra, and reports for one response: the file is removed before the client has received all of it.
  def test_a_body_that_removes_its_file_when_it_is_closed
    app = <<~'RUBY'
      class Report
        attr_reader :to_path
        def initialize = File.binwrite(@to_path = File.expand_path("report-#{rand}"), Random.new(7).bytes(10_000_000))
        def each = yield(File.binread(@to_path))
        def close = File.unlink(@to_path)
      end
      run ->(_) { [200, { "content-type" => "application/pdf" }, Report.new] }
    RUBY
    server = serve_folder({}, "-t", "1", app: app)
    clients = Array.new(3) { narrow_client(server).request }

    wait_until("the reports to be removed") { Dir.glob(server.path("report-*")).empty? && clients.all?(&:readable?) }
    clients.each { |client| assert_equal noise(10_000_000), client.answer.body }
  end

  def test_what_clients_say_about_sendfile_never_reaches_the_application
    app = 'run ->(env) { [200, {}, [env.values_at("HTTP_X_SENDFILE_TYPE", "HTTP_X_ACCEL_MAPPING").inspect]] }'

    [ROOT, []].each do |arguments|
      server = serve_folder({ "files/a.txt" => "a" }, *arguments, app: app)
      assert_equal "[nil, nil]", get(server, "/", "x-sendfile-type" => "X-Accel-Redirect", "x-accel-mapping" => "/a=/b").body
    end
  end

  SINATRA = <<~RUBY
    require "sinatra/base"
    class Shop < Sinatra::Base
      set :environment, :production
      use Rack::Sendfile
      get("/page") { send_file "files/page.txt" }
      get("/download") { send_file "files/large.bin", filename: "a.bin", type: "application/x-own" }
      get("/missing") { send_file "files/missing.txt" }
    end
    run Shop
  RUBY

  def test_send_file_of_sinatra
    needs_gems("sinatra")

    [ROOT, []].each { |arguments| assert_framework_sends(connect(serve_folder(FILES, *arguments, app: SINATRA))) }
  end

  RAILS = <<~RUBY
    require "logger"
    require "rails"
    require "action_controller/railtie"
    class Shop < Rails::Application
      config.load_defaults 6.1
      config.eager_load = false
      config.hosts.clear
      config.secret_key_base = "0123456789abcdef" * 8
      config.logger = Logger.new(File::NULL)
      config.consider_all_requests_local = false
    end
    class FilesController < ActionController::Base
      def page = send_file("files/page.txt", type: "text/plain", disposition: "inline")
      def download = send_file("files/large.bin", filename: "a.bin", type: "application/x-own")
      def missing = raise(ActionController::RoutingError, "none")
    end
    Shop.initialize!
    Shop.routes.draw { %w[page download missing].each { |name| get(name, to: "files#\#{name}") } }
    run Shop
  RUBY

  def test_send_file_of_rails
    needs_gems("rails")

    [ROOT, []].each { |arguments| assert_framework_sends(connect(serve_folder(FILES, *arguments, app: RAILS))) }
  end

  private

  def assert_framework_sends(client)
    assert_equal [200, "page"], client.get("/page").then { |answer| [answer.status, answer.body] }
    answer = client.get("/download")
    assert_equal [200, FILES["files/large.bin"], "application/x-own"], [answer.status, answer.body, answer["content-type"]]
    assert_match(/\Aattachment; filename="a\.bin"/, answer["content-disposition"])
    assert_nil answer["x-sendfile"]
    assert_equal 404, client.get("/missing").status
    part = client.get("/download", "range" => "bytes=1000000-1000009")
    assert_equal [206, FILES["files/large.bin"][1_000_000, 10]], [part.status, part.body]
    head = client.request("HEAD", "/download").answer(to: "HEAD")
    assert_equal [200, ""], [head.status, head.body]
    assert_includes [nil, "2000000"], head["content-length"], "Rails removes the body, but the file is not empty"
  end
end
