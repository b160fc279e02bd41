# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/control"

# Paths and other strings of the system are bytes. A service runs without a locale, so Ruby takes them for ASCII; and some of
# them are invalid text in every locale.
class BytesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Controlled

  NAMES = { "valid UTF-8" => "caf\u00e9", "no text" => "\xFF\xFE" }.freeze
  LOCALES = { "without a locale" => nil, "in C" => "C", "in UTF-8" => "C.UTF-8" }.freeze
  APP = "run ->(_env) { [200, {}, ['hello']] }"

  NAMES.to_a.product(LOCALES.to_a).each do |(kind, name), (where, locale)|
    define_method(:"test_#{kind}_in_all_paths_#{where}") do
      server = serve_in(name, locale, *flags(name))

      assert_equal %w[hello page], [body(server, "#{name}.sock", "/"), body(server, "#{name}.sock", "/page")]
      assert_equal %w[sock pid state control log].map { |ending| "#{name}.#{ending}".b }.sort, made(server, name)
      assert_equal 0, server.stop.exitstatus
      assert_empty server.stderr
    end

    define_method(:"test_check_and_mistakes_with_#{kind}_#{where}") do
      assert_ends_with 0, /\Abind /, name, locale, *flags(name), "--check"
      assert_ends_with 1, /\Afairlead: .*\.ru: no such file in /, name, locale, "missing-#{name}.ru"
      assert_ends_with 1, /\Afairlead: --workers: must be /, name, locale, "--workers", name
      assert_ends_with 1, /\Afairlead: --#{Regexp.escape(Fairlead::SystemText.shown(name))}: unknown option/, name, locale, "--#{name}"
    end
  end

  def test_variables_are_bytes_as_well
    server = serve_in("plain", nil, "--log-config", environment: { "PIDFILE" => "caf\u00e9.pid", "RACK_ENV" => "\xFF" })

    assert_equal server.pid.to_s, File.read(inside(server, "caf\u00e9.pid")).strip
    assert_equal 0, server.stop.exitstatus
  end

  def test_a_server_in_such_a_folder_restarts_without_a_locale
    NAMES.each_value do |name|
      server = serve_in(name, nil, "-w", "1", "--no-preload", *flags(name))
      worker = server.wait_for_workers(1).first
      server.signal(:USR1)
      wait_until("another worker", seconds: 30) { server.stdout.include?("phased restart: done") }
      server.signal(:USR2)
      wait_until("the new program", seconds: 30) { server.stdout.include?("hot restart: done") }

      refute_includes server.wait_for_workers(1), worker
      assert_equal "hello", body(server, "#{name}.sock", "/")
      assert_equal [0, ""], ctl("-S", inside(server, "#{name}.state"), "status").values_at(0, 2)
      assert_equal 0, server.stop.exitstatus
      assert_empty server.stderr
    end
  end

  private

  def serve_in(name, locale, *arguments, **options)
    in_such_a_folder(name, locale, *arguments, **options).start
  end

  # Runs an application in a folder of that name, given with --dir.
  def in_such_a_folder(name, locale, *arguments, environment: {})
    environment = { "LANG" => locale, "LC_ALL" => nil, "LC_CTYPE" => nil, **environment }
    server = own(Fairlead::Test::ServerProcess.new(nil, "--dir", name, *arguments, bind: nil, environment: environment))
    Dir.mkdir(inside(server, "", name))
    Dir.mkdir(inside(server, "public", name))
    File.write(inside(server, "public/page", name), "page")
    File.write(inside(server, "config.ru", name), APP)
    @inside = name
    server
  end

  def flags(name)
    ["-b", "unix://#{name}.sock?mode=0600", "--pidfile", "#{name}.pid", "--state", "#{name}.state", "--public", "public",
     "--control-url", "unix://#{name}.control", "--access-log", "#{name}.log", "--tag", name]
  end

  def inside(server, path, name = @inside) = File.join(server.directory.b, name.b, path.b)

  def made(server, name) = Dir.children(inside(server, "")).map(&:b).select { |path| path.start_with?(name.b) }.sort

  def body(server, socket, target)
    UNIXSocket.open(inside(server, socket)) do |client|
      client.write("GET #{target} HTTP/1.0\r\n\r\n")
      client.read.split("\r\n\r\n", 2).last
    end
  end

  def assert_ends_with(status, text, name, locale, *arguments)
    server = in_such_a_folder(name, locale, *arguments).launch

    assert_equal status, server.wait_exit.exitstatus, server.log
    assert_match text, server.stdout + server.stderr
    assert_operator server.stderr.lines.size, :<=, 1
  end
end
