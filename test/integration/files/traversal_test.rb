# frozen_string_literal: true

require "test_helper"
require "securerandom"
require "support/file_serving"
require "support/system_calls"
require "support/traversal_paths"

# Thousands of paths that lead out of the public folder on some server or system: no response contains a byte of the outside
# (or hidden) files, nothing breaks, and each response comes from the application or from a file of the folder. The server
# detects suspicious paths by their text, without asking the file system.
class TraversalTest < Minitest::Test
  include Fairlead::Test::FileServing

  TraversalPaths = Fairlead::Test::TraversalPaths

  APP = 'run ->(_) { [404, { "content-type" => "text/plain", "x-from" => "app" }, ["app"]] }'

  # Files that may be served: path => content. Some have the name of a path that has been decoded once.
  INSIDE = {
    "page.html" => "page", "sub/index.html" => "index", "sub/deep/x.txt" => "x", "sub/page.html" => "sub page", ".well-known/token" => "token",
    "%2e%2e/secret.txt" => "literal", "%2e%2e%2fsecret.txt" => "literal", "%5c..%5cwin.ini" => "literal"
  }.freeze

  # Hidden and outside names, which no response may come from.
  HIDDEN = %w[public/.env public/.git/config public/.htaccess public/secret.txt~ public/.hidden/secret.txt public/sub/.env].freeze
  OUTSIDE = %w[secret.txt public-secret/secret.txt public-secret/index.html etc/passwd SECRET~1.TXT .env].freeze

  # Number of requests that are sent at once.
  BATCH = 100

  def setup
    @canary = SecureRandom.hex(16)
  end

  def test_there_are_enough_of_them
    paths = TraversalPaths.all

    assert_operator paths.size, :>=, 1500
    assert_operator paths.count(&:refused), :>=, 1000
    assert_operator paths.count { |path| !path.refused }, :>=, 200
  end

  def test_nothing_from_outside_comes_back
    %w[inside none all].each do |symlinks|
      server = serving("--public-symlinks", symlinks)
      each_answer(server, TraversalPaths.all.map(&:target)) { |target, answer| assert_harmless(target, answer) }
      assert_empty server.stderr
      assert_file "page", get(server, "/page.html")
    end
  end

  def test_hidden_names_being_served_opens_no_other_way
    server = serving("--public-hidden")
    @hidden = HIDDEN.to_h { |name| [name.delete_prefix("public/"), "may be served"] }
    @hidden.each { |name, content| server.write("public/#{name}", content) }

    each_answer(server, TraversalPaths.all.map(&:target)) { |target, answer| assert_harmless(target, answer) }
  end

  def test_absolute_paths_and_absolute_targets
    server = serving
    secret = server.path("secret.txt")
    paths = ["/#{secret}", "//#{secret}", "/%2f#{secret.delete_prefix("/")}", secret, "/.#{secret}", "http://a//#{secret}", "http://a/../secret.txt",
             "http://a/%2e%2e/secret.txt", "http://a#{secret}", "http://a/..%2fsecret.txt", "http://a/.env", "http://a//", "http://a"]

    each_answer(server, paths) { |target, answer| assert_harmless(target, answer) }
  end

  # The application may serve hidden names, but not outside ones.
  def test_names_that_an_application_passes_on
    folders = ["--sendfile-root", "public", "--sendfile-root", "/internal/=public"]
    files = [*INSIDE.transform_keys { |name| "public/#{name}" }, *OUTSIDE.map { |name| [name, @canary] }].to_h
    app = 'run ->(env) { [200, { env["HTTP_X_FIELD"] => env["HTTP_X_NAME"] }, []] }'
    server = serve_folder(files, *folders, app: app)
    targets = TraversalPaths.all.map(&:target)

    assert_names_lead_nowhere(server, "x-accel-redirect", targets.map { |target| "/internal#{target}" })
    assert_names_lead_nowhere(server, "x-sendfile", targets.map { |target| "#{server.path("public")}#{decoded(target)}" }.grep_v(/[[:cntrl:]]/n))
  end

  def test_every_method_that_the_folder_answers
    server = serving
    client = connect(server)

    TraversalPaths.others.each do |path|
      answer = client.request("HEAD", path.target).answer(to: "HEAD")
      assert_includes [200, 301, 404], answer.status, path.target
      assert_from_app answer, path.target if path.refused
    end
  end

  def test_what_the_text_gives_away_costs_no_system_call
    linux_only("one call for a whole path")
    server = serving
    refused = TraversalPaths.all.select(&:refused).map(&:target)
    warm_up(server, refused)
    calls = Fairlead::Test::SystemCalls.new(server.serving_pid, server.path("strace.log"))
    each_answer(server, refused) { |target, answer| assert_from_app answer, target }
    assert_file "x", get(server, "/sub/deep/x.txt")

    assert_empty calls.before("sub/deep/x.txt")
  rescue Fairlead::Test::SystemCalls::Unavailable => e
    skip e.message
  ensure
    calls&.stop
  end

  private

  def serving(*arguments)
    serve_public(INSIDE, *arguments, app: APP) do |server|
      (HIDDEN + OUTSIDE).each { |name| server.write(name, @canary) }
    end
  end

  # Makes Ruby load everything that the first requests need.
  def warm_up(server, targets)
    2.times { each_answer(server, targets.first(BATCH)) { |_, answer| assert_from_app answer } }
    assert_file "page", get(server, "/page.html")
  end

  # Sends the targets in batches on one connection, and yields each with its response.
  def each_answer(server, targets)
    client = connect(server)
    targets.each_slice(BATCH) do |batch|
      client.write(batch.map { |target| "GET #{target} HTTP/1.1\r\nhost: a\r\n\r\n" }.join)
      batch.each { |target| yield target, client.answer }
    end
  end

  def decoded(target) = target.b.gsub(/%\h\h/) { |octet| octet[1, 2].hex.chr }

  def assert_names_lead_nowhere(server, field, names)
    client = connect(server)
    names.each_slice(BATCH) do |batch|
      client.write(batch.map { |name| "GET / HTTP/1.1\r\nhost: a\r\nx-field: #{field}\r\nx-name: #{name}\r\n\r\n" }.join)
      batch.each do |name|
        answer = client.answer
        assert_includes [200, 404], answer.status, name
        refute_includes answer.head + answer.body, @canary, name
        assert_includes INSIDE.values, answer.body, name if answer.status == 200
      end
    end
  end

  def assert_harmless(target, answer)
    refute_includes answer.head + answer.body, @canary, target
    refute_match(/root:.*:0:0:/, answer.body, target)
    case answer.status
    when 200 then assert_includes INSIDE.values + (@hidden || {}).values, answer.body, target
    when 301 then assert_match(%r{\A/[^/\\]}, answer["location"], target)
    else assert_from_app answer, target
    end
  end
end
