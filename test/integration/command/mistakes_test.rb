# frozen_string_literal: true

require "test_helper"
require "open3"
require "tempfile"
require "socket"

# Every mistake that prevents a start is reported in one line that names its source, with exit status 1, no backtrace, and
# nothing on standard output.
class MistakesTest < Minitest::Test
  include Fairlead::Test::Folders

  APP = "run ->(env) { [200, {}, []] }"

  # arguments => the line without its "fairlead: "
  FLAGS = {
    %w[--workers few] => "--workers: must be a whole number from 0 to 64, or auto, not \"few\"",
    %w[--wrokers 2] => "--wrokers: unknown option; did you mean --workers?",
    %w[--workers] => "--workers: missing argument",
    %w[-b gopher://x] => "--bind: cannot listen on gopher://x: unknown scheme; use tcp, ssl or unix",
    %w[-b tcp://127.0.0.1:0?backlgo=1] => "--bind: cannot listen on tcp://127.0.0.1:0?backlgo=1: unknown parameter backlgo",
    %w[--health-url ssl://127.0.0.1:0] => "--health-url: there is no TLS at this address; use tcp://… or unix://…",
    %w[--control-url ssl://127.0.0.1:0] => "--control-url: there is no TLS at this address; use tcp://… or unix://…",
    %w[--head-timeout soon] => "--head-timeout: must be",
    %w[--body-max-bytes 1x] => "--body-max-bytes: must be",
    %w[--access-log-format pretty] => "--access-log-format: must be",
    %w[--dir /nowhere] => "--dir: must be",
    %w[-C missing.rb] => "missing.rb: cannot be read",
    %w[missing.ru] => "missing.ru: no such file",
    %w[config.ru other.ru] => "unexpected argument: other.ru",
    %w[-b 127.0.0.1:3000] => "cannot listen on 127.0.0.1:3000: the scheme is missing; use tcp://127.0.0.1:3000",
    %w[-b :3000] => "the scheme is missing; use tcp://*:3000",
    %w[-b localhost -p 0] => "the scheme is missing; use tcp://localhost:PORT",
    %w[-b /run/app.sock] => "the scheme is missing; use unix:///run/app.sock",
    %w[-c config/puma.rb] => "-c: unknown option; use -C",
    %w[-o 0.0.0.0] => "-o: unknown option; use -b tcp://HOST:PORT",
    %w[--host 0.0.0.0] => "--host: unknown option; use -b tcp://HOST:PORT",
    %w[--persistent-timeout 5] => "--persistent-timeout: unknown option; use --keep-alive-timeout",
    %w[--ssl-bind 0.0.0.0] => "--ssl-bind: unknown option; only a configuration file can set ssl_bind",
    %w[-C .] => ".: cannot be read (Is a directory)",
    %w[-t 5-5] => "--threads: must be a number, or MIN:MAX such as 1:5, not \"5-5\"",
    %w[--worker 2] => "--worker: ambiguous option; did you mean --workers, --worker-timeout, --worker-max-age,",
    %w[start] => "start: unknown command; `fairlead` without one starts the server, see fairlead --help",
    %w[server -p 3000] => "server: unknown command; `fairlead` without one starts the server, see fairlead --help",
    %w[restart] => "restart: unknown command; use fairlead ctl restart, which steers a running server",
    %w[.] => ".: is a folder; name the rackup file in it, or use --dir .",
    %w[--rackup /] => "/: is a folder, not a rackup file",
    %w[migrate --bogus] => "--bogus: unknown option; see fairlead migrate --help",
    %w[-t 5:2] => "--threads: is 5, more than max_threads (2)"
  }.freeze

  # config.ru => the line
  APPS = {
    "\n\nrun Missing" => "config.ru:3: uninitialized constant Missing (NameError)",
    "require 'missing_gem'" => "config.ru:1: cannot load such file -- missing_gem (LoadError)",
    "use Object\nraise \"first line\nsecond\"" => "config.ru:2: first line (RuntimeError)",
    "exit 3" => "config.ru:1: it called exit while loading",
    "require './app'" => "app.rb:2: broken (RuntimeError) (loaded from config.ru:1)"
  }.freeze

  # configuration file => the line
  FILES = {
    "\nworkers 'few'" => "config/fairlead.rb:2: workers: must be",
    "wrokers 2" => "config/fairlead.rb:1: wrokers: unknown option; did you mean workers?",
    "\n\nraise 'oops'" => "config/fairlead.rb:3: oops (RuntimeError)",
    "threads 1, 2, 3" => "config/fairlead.rb:1: threads: takes",
    "before_fork" => "config/fairlead.rb:1: before_fork: needs a block",
    "\nexit 3" => "config/fairlead.rb:2: it called exit",
    "File.read('nowhere')" => "config/fairlead.rb:1: No such file or directory - nowhere (Errno::ENOENT)"
  }.freeze

  def test_a_wrong_argument_is_named
    in_folder("config.ru" => APP) do
      FLAGS.each { |arguments, line| assert_refused line, *arguments }
    end
  end

  def test_an_address_that_is_given_twice_is_named_twice
    in_folder("config.ru" => APP) do
      port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
      line = "cannot listen on tcp://0.0.0.0:#{port}: this server listens there already, for tcp://127.0.0.1:#{port}; " \
             "give one of the two (-p is an address too)"
      assert_refused line, "-b", "tcp://127.0.0.1:#{port}", "-b", "tcp://0.0.0.0:#{port}"
    end
  end

  def test_help_and_version_may_be_words_unless_they_are_files
    in_folder("config.ru" => APP) do
      assert_equal [fairlead("--help"), fairlead("--version")], [fairlead("help"), fairlead("version")]
      File.write("start", "")
      assert_refused "start: cannot load such file", "start", "-b", "tcp://127.0.0.1:0"
    end
  end

  def test_ctl_takes_no_further_argument
    in_folder do
      _, errors, status = fairlead("ctl", "status", "extra")

      assert_equal [2, "fairlead ctl: unexpected argument: extra; status takes none, see fairlead ctl --help\n"], [status.exitstatus, errors]
    end
  end

  def test_an_app_that_cannot_be_loaded_is_named_with_its_line
    APPS.each do |text, line|
      in_folder("config.ru" => text, "app.rb" => "\nraise 'broken'") { assert_refused line, "-b", "tcp://127.0.0.1:0" }
    end
  end

  def test_a_syntax_error_of_the_app_names_its_line
    in_folder("config.ru" => "run(\n->(env) { [200, {}, [] }") do
      _, errors, status = fairlead("-b", "tcp://127.0.0.1:0")

      assert_equal 1, status.exitstatus
      assert_match(/\Afairlead: config\.ru:2: syntax error/, errors)
    end
  end

  def test_a_wrong_line_of_the_configuration_file_is_named
    FILES.each do |text, line|
      in_folder("config.ru" => APP, "config/fairlead.rb" => text) { assert_refused line, "-b", "tcp://127.0.0.1:0" }
    end
  end

  def test_a_wrong_variable_is_named
    in_folder("config.ru" => APP) do
      assert_refused "WEB_CONCURRENCY: workers: must be", environment: { "WEB_CONCURRENCY" => "lots" }
      assert_refused "PORT: port: must be", environment: { "PORT" => "http" }
    end
  end

  def test_the_log_and_the_socket_that_cannot_be_opened_are_named
    in_folder("config.ru" => APP, "plain" => "a file") do
      assert_refused "--access-log: there is no folder #{Dir.pwd}/no/such/folder", "--access-log", "no/such/folder/log"
      assert_refused "--access-log: Is a directory", "--access-log", "."
      assert_refused "cannot listen on unix://plain: the path exists and is not a socket", "-b", "unix://plain"
      assert_refused "cannot listen on tcp://192.0.2.1:0: no interface of this machine has that address", "-b", "tcp://192.0.2.1:0"
    end
  end

  def test_the_folders_of_files_are_looked_for_also_when_only_checking
    in_folder("config.ru" => APP) do
      missing = "there is no folder #{Dir.pwd}/no"
      [%w[--pidfile no/pid], %w[--state no/state --control-url tcp://127.0.0.1:0], %w[--access-log no/log]].each do |flags|
        assert_refused missing, *flags
        assert_refused missing, "--check", *flags
      end
      [%w[-b unix://no/socket], %w[--control-url unix://no/socket], %w[--health-url unix://no/socket]].each do |flags|
        assert_refused missing, *flags
        assert_refused missing, "--check", *flags
      end
    end
  end

  def test_messages_about_files_have_no_names_of_functions_of_ruby_and_none_of_other_files
    in_folder("config.ru" => APP, "folder/file" => "") do
      assert_refused "fairlead: --pidfile: Is a directory\n", "--pidfile", "folder", "-b", "tcp://127.0.0.1:0"
      assert_refused "fairlead: --state: Is a directory\n", "--state", "folder", "--control-url", "tcp://127.0.0.1:0", "-b", "tcp://127.0.0.1:0"
    end
  end

  def test_a_configuration_file_that_calls_exit_is_named
    in_folder("config.ru" => APP, "config/fairlead.rb" => "workers 1\nexit 3") do
      assert_refused "config/fairlead.rb:2: it called exit, with status 3"
      assert_refused "config/fairlead.rb:2: it called exit, with status 3", "--check"
    end
  end

  def test_help_lists_every_option_with_its_flag_and_default
    help, errors, status = fairlead("--help")

    assert_equal [true, ""], [status.success?, errors]
    Fairlead::Options.each { |entry| entry.long_flags.each { |flag| assert_match(/--(\[no-\])?#{flag}\b/, help) } }
  end

  def test_what_cannot_be_printed_is_no_success
    in_folder("config/puma.rb" => "threads 1, 2", "config.ru" => APP) do
      [%w[migrate --stdout], %w[migrate], %w[migrate --help], %w[ctl --help], %w[ctl --version], %w[--check], %w[--version]].each do |arguments|
        assert_not_printed(*arguments)
      end
    end
  end

  private

  def assert_not_printed(*arguments)
    Tempfile.create("errors") do |errors|
      command = [RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/fairlead", *arguments]
      system(*command, out: "/dev/full", err: errors)

      assert_equal 1, $?.exitstatus, arguments.join(" ")
      assert_match(/\Afairlead(?: ctl)?: cannot print: No space left on device\n\z/, File.read(errors.path))
    end
  end

  def assert_refused(line, *arguments, environment: {}, output: /\A\z/)
    printed, errors, status = fairlead(*arguments, environment: environment)

    assert_equal [1, 1], [status.exitstatus, errors.lines.size], errors
    assert errors.start_with?("fairlead: ") && errors.include?(line), "#{errors} is not about #{line.inspect}"
    assert_match output, printed
  end

  # Runs the command in the current folder: [standard output, standard error, status].
  def fairlead(*arguments, environment: {})
    environment = Fairlead::Test::ServerProcess::CLEAN.merge(environment)
    Open3.capture3(environment, RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/fairlead", *arguments)
  end
end
