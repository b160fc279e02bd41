# frozen_string_literal: true

require "test_helper"
require "open3"
require "socket"
require "support/as_stranger"

# `--check` and the start refuse the same configurations with the same message.
class PreflightTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Servers

  APP = "run ->(_env) { [200, {}, []] }"
  FILES = { "folder/file" => "", "plain" => "text", "empty.ru" => "", "puma/plugin/broken.rb" => "raise 'on purpose'" }.freeze
  ANY = "tcp://127.0.0.1:0"
  LONG = "unix:///#{"x" * 200}".freeze
  TWICE = "this server listens there already"

  # arguments => message of both. A free port replaces PORT.
  REFUSED = {
    ["-b", "#{ANY}?backlog=99999999999999999999"] => "backlog must be a number from 1 to 65535, not 99999999999999999999",
    ["-b", "#{ANY}?backlog=0"] => "backlog must be a number from 1 to 65535, not 0",
    ["-b", "unix://s?mode=77777777777777777777777"] => "mode must be a number from 00 to 0777",
    ["-b", "unix://s?umask=77777777777777777777777"] => "umask must be a number from 00 to 0777",
    ["--control-url", "unix://s?mode=1777"] => "mode must be a number from 00 to 0777, not 1777",
    ["-b", "tcp://127.0.0.1:PORT", "-b", "tcp://127.0.0.1:PORT"] => TWICE,
    ["-b", "tcp://127.0.0.1:PORT", "-b", "tcp://0.0.0.0:PORT"] => TWICE,
    ["-b", "tcp://[::]:PORT", "-b", "tcp://127.0.0.1:PORT"] => TWICE,
    ["-b", "tcp://localhost:PORT", "-p", "PORT"] => TWICE,
    ["-b", "tcp://127.0.0.1:PORT", "--control-url", "tcp://127.0.0.1:PORT"] => TWICE,
    ["-b", ANY, "--control-url", "tcp://127.0.0.1:PORT", "--health-url", "tcp://localhost:PORT"] => TWICE,
    ["-b", "unix://s", "-b", "unix://./s?mode=0600"] => TWICE,
    ["-b", "unix://@s", "-b", "unix://@s"] => TWICE,
    ["-b", "unix://s", "--health-url", "unix://s"] => TWICE,
    ["-b", "tcp://no.such.host.invalid:0"] => "the host is not known",
    ["-b", "tcp://[::zz]:0"] => "the host is not known",
    ["-b", ANY, "--control-url", "tcp://no.such.host.invalid:0"] => "the host is not known",
    ["-b", "tcp://192.0.2.77:0"] => "no interface of this machine has that address",
    ["-b", ANY, "--health-url", "tcp://192.0.2.77:0"] => "no interface of this machine has that address",
    ["-b", "tcp://[fe80::1%none]:0"] => "the host is not known",
    ["-b", LONG] => "too long unix socket path",
    ["-b", "unix://@#{"x" * 200}"] => "too long unix socket path",
    ["-b", ANY, "--control-url", LONG] => "too long unix socket path",
    ["-b", "unix://a\nb"] => "a line break cannot stand in an address",
    ["-b", "unix://a%0Ab"] => "a line break cannot stand in a path",
    ["-b", ANY, "--control-url", "unix://a\nb"] => "a line break cannot stand in an address",
    ["-b", "ssl://127.0.0.1:0?cert=a\nb&key=a"] => "a line break cannot stand in an address",
    ["-b", "unix://plain"] => "the path exists and is not a socket",
    ["-b", "unix://folder"] => "Is a directory",
    ["-b", "unix://none/s"] => "there is no folder",
    ["-b", "unix://plain/s"] => "there is no folder",
    ["-b", ANY, "--server-header", "a\r\nset-cookie: b=c"] => "--server-header: must be",
    ["-b", ANY, "--server-header", "a\tb\x01"] => "--server-header: must be",
    ["-b", ANY, "--pidfile", "folder"] => "--pidfile: Is a directory",
    ["-b", ANY, "--pidfile", "plain"] => "it does not contain a process id",
    ["-b", ANY, "--pidfile", "link"] => "it is a symbolic link",
    ["-b", ANY, "--state", "folder"] => "--state: Is a directory",
    ["-b", ANY, "--access-log", "folder"] => "--access-log: Is a directory",
    ["-b", ANY, "--redirect-stdout", "folder"] => "--redirect-stdout: Is a directory",
    ["-b", ANY, "--redirect-stderr", "none/log"] => "there is no folder",
    ["-b", ANY, "--public", "plain"] => "--public: must be an existing folder",
    ["-b", ANY, "--temp-dir", "none"] => "--temp-dir: must be an existing folder",
    ["-b", "ssl://127.0.0.1:0?cert=none.pem&key=none.key"] => "none.pem: cannot be read",
    ["-b", ANY, "--plugin", "nosuch"] => "plugin nosuch: there is no puma/plugin/nosuch.rb on the load path",
    ["-b", ANY, "-I", ".", "--plugin", "broken"] => "plugin broken: on purpose (RuntimeError)",
    ["-b", ANY, "-I", "lib:~nosuch/x"] => "-I: ~nosuch/x names no home folder that is known",
    ["-b", ANY, "~nosuch/config.ru"] => "names no home folder that is known",
    ["-b", "tcp://[::ffff:127.0.0.1]:PORT", "-b", "tcp://127.0.0.1:PORT"] => TWICE,
    ["-b", ANY, "none.ru"] => "no such file",
    ["-b", ANY, "folder"] => "is a folder"
  }.freeze

  # Valid arguments.
  ACCEPTED = [
    ["-b", "tcp://127.0.0.1:PORT?backlog=65535"], ["-b", ANY, "-b", ANY], ["-b", "tcp://[::1]:PORT", "-b", "tcp://127.0.0.1:PORT"],
    ["-b", "unix://s?mode=0777&umask=0"], ["-b", "unix://@fairlead-PORT"], ["-b", ANY, "--server-header", "shop/1.0 (\u00e9)"],
    ["-b", "tcp://[::ffff:127.0.0.1]:PORT"], ["-b", "tcp://[::ffff:127.0.0.1]:PORT", "-b", "tcp://127.0.0.2:PORT"],
    ["-b", ANY, "--plugin", "tmp_restart"], ["-b", ANY, "-t", ":5"], ["-b", ANY, "--control-url", "auto", "--control-token", "none"]
  ].freeze

  REFUSED.each do |arguments, message|
    define_method(:"test_#{arguments.join(" ")[0, 90].inspect}_is_refused") do
      linux_only("abstract sockets") if arguments.join.include?("unix://@")
      check, start = both(arguments) { |server| assert_equal 1, server.wait_exit.exitstatus, server.log }

      said = [check, start].map { |server| server.stderr.gsub(server.directory, "FOLDER") }

      assert_includes said.first, message
      assert_equal [said.first, "", "", 1], [said.last, start.stdout, check.stdout, said.first.lines.size]
    end
  end

  ACCEPTED.each do |arguments|
    define_method(:"test_#{arguments.join(" ")}_is_accepted") do
      linux_only("abstract sockets") if arguments.join.include?("unix://@")
      with_port(arguments) do |words|
        check = launched("--check", *words)

        assert_equal 0, check.wait_exit.exitstatus, check.log
        assert_equal 0, launched(*words, &:start).stop.exitstatus
      end
    end
  end

  def test_what_may_not_be_written_is_refused_by_both
    skip "needs root, to become another user" unless Process.uid.zero?
    [%w[--pidfile /etc/pid], %w[--state /etc/state], %w[--access-log /etc/log], %w[--redirect-stdout /etc/out],
     %w[-b unix:///etc/socket]].each do |flags|
      servers = [["--check"], []].map { |check| own(Fairlead::Test::AsStranger.new(APP, *check, *flags)).launch }

      assert_equal [1, 1], servers.map { |server| server.wait_exit.exitstatus }
      assert_equal ["fairlead: #{flags.first.sub("-b", "--bind")}: Permission denied\n"] * 2, servers.map(&:stderr)
    end
  end

  def test_an_address_with_a_scope_is_listened_on
    info = Socket.ip_address_list.find(&:ipv6_linklocal?) or skip "no interface has a link-local address"
    host = info.ip_address
    [host, host.sub("%", "%25")].each do |text|
      server = launched("-b", "tcp://[#{text}]:0", &:start)

      assert_match %r{\AHTTP/1\.1 200 }, Socket.tcp(host, server.port) { |socket| socket.write("GET / HTTP/1.0\r\n\r\n") && socket.read }
      assert_equal 0, server.stop.exitstatus
    end
  end

  def test_a_token_that_is_none_is_shown_as_that
    { "none" => "none", "s3cret" => "\\(set\\)" }.each do |token, shown|
      check = launched("--check", "-b", ANY, "--control-url", "auto", "--control-token", token)

      assert_equal 0, check.wait_exit.exitstatus
      assert_match(/^control_token +#{shown} +--control-token$/, check.stdout)
    end
    check = launched("--check", "-b", ANY)
    check.wait_exit

    assert_match(/^control_token +a new one at each start +default$/, check.stdout)
  end

  # A server continues with its listeners, even if their files have gone.
  def test_a_restart_does_not_ask_again_for_what_is_open
    server = launched("-b", "unix://sockets/s", files: { "sockets/x" => "" }, &:start)
    File.rename(server.path("sockets"), server.path("moved"))
    server.signal(:USR2)
    wait_until("the restart") { server.stdout.include?("hot restart: done") || server.stderr != "" }

    assert_empty server.stderr
    assert_equal 0, server.stop.exitstatus
  end

  def test_a_running_server_keeps_nobody_from_checking
    with_port(["-b", "tcp://127.0.0.1:PORT", "--pidfile", "pid"]) do |words|
      server = launched(*words, &:start)
      check = launched("--check", *words, &:launch)

      assert_equal 0, check.wait_exit.exitstatus, check.log
      assert_equal 0, server.stop.exitstatus
    end
  end

  # The folder has no name that could be restored, or that relative paths could use.
  def test_a_folder_that_is_gone_is_named_in_one_line
    in_folder do |folder|
      command = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/fairlead", "-b", ANY]
      Dir.mkdir("gone")
      _, errors, status = Open3.capture3("rmdir #{folder}/gone && exec #{command.join(" ")}", chdir: "gone")

      assert_equal [1, "fairlead: the current folder has been removed; change to one that exists\n"], [status.exitstatus, errors]
    end
  end

  # For any exception before the start, and with any load path, the message has that error, and not a failure to load its
  # class.
  def test_an_unexpected_error_is_told_as_it_is
    files = { "there/config.ru" => APP, "raise.rb" => "def Process.setproctitle(*) = raise('something unexpected')" }
    environment = { "RUBYOPT" => "-r./raise", "RUBYLIB" => "lib" }
    server = own(Fairlead::Test::ServerProcess.new(nil, "-b", ANY, "--dir", "there", bind: nil, files: files, environment: environment))
    File.symlink(File.join(ROOT, "lib"), server.path("lib"))
    server.launch

    refute_equal 0, server.wait_exit.exitstatus
    assert_includes server.stderr, "something unexpected (RuntimeError)"
  end

  private

  # Calls the block for the check and for the start.
  def both(arguments, &)
    with_port(arguments) { |words| [["--check", *words], words].map { |one| launched(*one).tap(&) } }
  end

  def with_port(arguments)
    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    yield(arguments.map { |word| word.sub("PORT", port.to_s) })
  end

  def launched(*arguments, files: {}, &start)
    server = own(Fairlead::Test::ServerProcess.new(APP, *arguments, bind: nil, files: FILES.merge(files)))
    File.symlink("elsewhere", server.path("link"))
    start ? start.call(server) : server.launch
    server
  end
end
