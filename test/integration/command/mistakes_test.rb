# frozen_string_literal: true

require "test_helper"
require "open3"

# Whatever keeps the command from starting is one line that names who said what, and exit status 1: no backtrace, and
# nothing on standard output.
class MistakesTest < Minitest::Test
  include Fairlead::Test::Folders

  APP = "run ->(env) { [200, {}, []] }"

  # arguments => the line, apart from its "fairlead: "
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

  # The configuration file => the line
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

  def test_an_app_that_cannot_be_loaded_is_named_with_its_line
    APPS.each do |text, line|
      in_folder("config.ru" => text, "app.rb" => "\nraise 'broken'") { assert_refused line, "-b", "tcp://127.0.0.1:0", output: /listening/ }
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
      assert_refused "--access-log: No such file or directory", "--access-log", "no/such/folder/log"
      assert_refused "cannot listen on unix://plain: the path exists and is not a socket", "-b", "unix://plain"
      assert_refused "cannot listen on tcp://192.0.2.1:0: no interface of this machine has that address", "-b", "tcp://192.0.2.1:0"
    end
  end

  def test_what_cannot_be_written_is_named_without_words_of_ruby
    in_folder("config.ru" => APP) do
      assert_refused "pid file #{File.expand_path("no/pid")}: No such file or directory\n", "-b", "tcp://127.0.0.1:0", "--pidfile", "no/pid"
      assert_refused "state file #{File.expand_path("no/state")}: No such file or directory\n", "-b", "tcp://127.0.0.1:0", "-S", "no/state",
                     output: /listening/
      assert_refused "cannot listen on unix://no/socket: there is no such folder\n", "-b", "unix://no/socket"
    end
  end

  def test_check_finds_missing_folders_and_certificates_without_an_address
    in_folder("config.ru" => APP) do |folder|
      { "--pidfile" => "no/pid", "--access-log" => "no/log", "--state" => "no/state", "-b" => "unix://no/socket",
        "--control-url" => "unix://no/socket", "--health-url" => "unix://no/socket" }.each do |flag, value|
        assert_refused "there is no folder #{folder}/no", "--check", flag, value
      end
      _, errors, = fairlead("--check", "--certificate", "a.pem,a.key", "--acme", "shop.example?terms_of_service_agreed=true")

      assert_match(/certificate: has no effect without an ssl:.*\n.*acme: has no effect without an ssl:/, errors)
    end
  end

  def test_a_full_disk_is_one_line
    in_folder("config.ru" => APP) do
      output, status = Open3.capture2e("#{RbConfig.ruby} -I#{ROOT}/lib #{ROOT}/exe/fairlead --check 2>&1 >/dev/full")

      assert_equal [1, "fairlead: cannot print: No space left on device\n"], [status.exitstatus, output]
    end
  end

  def test_help_lists_every_option_with_its_flag_and_default
    help, errors, status = fairlead("--help")

    assert_equal [true, ""], [status.success?, errors]
    Fairlead::Options.each { |entry| entry.long_flags.each { |flag| assert_match(/--(\[no-\])?#{flag}\b/, help) } }
  end

  private

  def assert_refused(line, *arguments, environment: {}, output: /\A\z/)
    printed, errors, status = fairlead(*arguments, environment: environment)

    assert_equal [1, 1], [status.exitstatus, errors.lines.size], errors
    assert errors.start_with?("fairlead: ") && errors.include?(line), "#{errors} is not about #{line.inspect}"
    assert_match output, printed
  end

  # Runs the command in the current folder: [standard output, standard error, status].
  def fairlead(*arguments, environment: {})
    cleared = Fairlead::Test::ServerProcess::CLEARED.to_h { |name| [name, nil] }
    Open3.capture3(cleared.merge(environment), RbConfig.ruby, "-I#{ROOT}/lib", "#{ROOT}/exe/fairlead", *arguments)
  end
end
