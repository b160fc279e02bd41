# frozen_string_literal: true

require "test_helper"
require "fairlead/compat/iodine/arguments"

# Arguments of `fairlead-iodine`, and the configuration that they result in.
class CompatIodineArgumentsTest < Minitest::Test
  include Fairlead::Test::Folders

  Arguments = Fairlead::Compat::IodineArguments

  # Replaces the module Iodine, in which a loaded file may have set something.
  module Unset
    DEFAULT_SETTINGS = { port: "3000", address: nil }.freeze

    def self.threads = 0
    def self.workers = 0
    def self.verbosity = 4
  end

  module Set
    DEFAULT_SETTINGS = { port: "4000", address: "127.0.0.1" }.freeze

    def self.threads = 7
    def self.workers = 3
    def self.verbosity = 1
  end

  # With TLS, as after `Iodine::DEFAULT_SETTINGS[:tls] = Iodine::TLS.new`.
  module Secured
    TLS = Object.new.tap { |tls| def tls.address_for(host, port) = "ssl://#{host}:#{port}?min_version=1.3" }
    DEFAULT_SETTINGS = { port: "4000", address: "h", tls: TLS }.freeze

    def self.threads = 0
    def self.workers = 0
    def self.verbosity = 4
  end

  ANY = Fairlead::Binding.any_host

  def test_without_arguments_it_listens_on_the_default_port_of_iodine
    assert_equal [{ config: ["-"], bind: [Fairlead::Binding.address_for_port(3000)] }, nil], [parse, parse[:rackup]]
  end

  def test_each_flag_has_iodines_meaning
    {
      %w[-p 1 -b 127.0.0.1] => { bind: ["tcp://127.0.0.1:1"] }, %w[-port=1 -bind ::1] => { bind: ["tcp://[::1]:1"] },
      %w[-address /tmp/a.sock] => { bind: ["unix:///tmp/a.sock"] }, %w[-b ./a.sock -p 5] => { bind: ["unix://./a.sock"] },
      %w[-t 4 -w 2] => { max_threads: 4, workers: 2 }, %w[-threads 4 -workers=1] => { max_threads: 4, workers: 0 },
      %w[-www .] => { public_dir: "." }, %w[-public=.] => { public_dir: "." },
      %w[-k 5] => { keep_alive_timeout: 5 }, %w[-tout 6] => { keep_alive_timeout: 6 }, %w[-keep-alive 7] => { keep_alive_timeout: 7 },
      %w[-v] => { log_requests: true }, %w[-log] => { log_requests: true },
      %w[-V 3] => { quiet: true }, %w[-V4] => {}, %w[-verbosity=0] => { quiet: true },
      %w[-maxbd 2] => { body_max_bytes: 2 << 20 }, %w[-max-header 16] => { head_max_bytes: 16 << 10 },
      %w[-maxms=9] => { message_max_bytes: 9 << 10 }, %w[-ping 30] => { ping_interval: 30 },
      %w[-pid a.pid] => { pid_file: "a.pid" }, %w[-pidfile run/] => { pid_file: "run/iodine.pid" },
      %w[-warmup] => { preload: true }, %w[--preload] => { preload: true }, %w[-rp 5] => {}
    }.each { |arguments, expected| assert_equal expected, parse(*arguments).except(:config, *(:bind unless expected[:bind])), arguments }
  end

  def test_a_value_may_be_attached
    assert_equal({ bind: ["tcp://#{ANY.include?(":") ? "[#{ANY}]" : ANY}:3456"], max_threads: 5, quiet: true },
                 parse("-p3456", "-t5", "-V1").except(:config))
  end

  def test_negative_numbers_are_fractions_of_the_processors
    count = Fairlead::Options::Processors.available

    assert_equal count, parse("-t", "-1")[:max_threads]
    assert_equal 1, parse("-t-1000")[:max_threads]
    assert_equal count == 1 ? 0 : count, parse("-w", "-1")[:workers]
  end

  def test_the_variables_are_iodines
    environment = { "PORT" => "9", "ADDRESS" => "127.0.0.1", "THREADS" => "3", "WORKERS" => "2" }

    assert_equal [["tcp://127.0.0.1:9"], 3, 2], parse(environment: environment).values_at(:bind, :max_threads, :workers)
    assert_equal 5, parse(environment: { "WEB_CONCURRENCY" => "5", "WORKERS" => "2" })[:workers]
    assert_nil parse(environment: { "WEB_CONCURRENCY" => "auto", "THREADS" => " " })[:workers]
    assert_equal 4, parse("-t", "4", environment: { "THREADS" => "3" })[:max_threads]
  end

  def test_what_a_file_has_set_counts_unless_a_flag_says_otherwise
    assert_equal({ bind: ["tcp://127.0.0.1:4000"], max_threads: 7, workers: 3, quiet: true }, parse(iodine: Set).except(:config))
    assert_equal [2, 4, nil], parse("-t2", "-w4", "-V5", iodine: Set).values_at(:max_threads, :workers, :quiet)
  end

  def test_files_and_redis_are_kept_for_the_command
    arguments = Arguments.new(%w[-C a.rb -config=b.rb -r redis://x], {})

    assert_equal [%w[a.rb b.rb], "redis://x"], [arguments.files, arguments.redis]
    assert_equal "redis://y", Arguments.new([], { "IODINE_REDIS_URL" => "redis://y" }).redis
  end

  def test_the_rackup_file_needs_no_extension
    in_folder("app.ru" => "", "other" => "", "other.ru" => "") do
      assert_equal %w[app.ru other gone], %w[app other gone].map { |name| parse("-w", "1", name)[:rackup] }
    end
  end

  def test_flags_of_fairlead_are_left_to_it
    assert_equal [2, 9, "app.ru"], parse("-w", "2", "--backlog=9", "app.ru").values_at(:workers, :backlog, :rackup)
    assert_equal [7, 5, %w[- x.rb]], parse("--backlog=7", "--threads=5:5", "--config=x.rb").values_at(:backlog, :min_threads, :config)
  end

  def test_tls
    assert_equal ["ssl://h:1?cert=c.pem&key=k.pem"], parse("-b", "h", "-p", "1", "-tls-cert", "c.pem", "-key=k.pem")[:bind]
    assert_equal ["ssl://h:1"], parse("-b", "h", "-p", "1", "-tls")[:bind]
    assert_equal ["ssl://[::1]:1"], parse("-b", "::1", "-p", "1", "-tls")[:bind]
    assert_equal ["ssl://#{ANY.include?(":") ? "[#{ANY}]" : ANY}:3000"], parse("-tls")[:bind]
  end

  def test_the_password_of_a_key_is_in_no_address
    bind = parse("-b", "h", "-p", "1", "-tls", "-cert", "c", "-tls-key", "k", "-tls-pass", "a b")[:bind]

    assert_match(/\Assl:\/\/h:1\?cert=c&key=k&key_password_command=store%3A\d+\z/, bind.first)
    assert_equal "a b", Fairlead::Tls::Store[Fairlead::Binding.parse(bind.first).tls.key_password_command]
  end

  def test_what_a_file_has_set_of_tls_counts
    assert_equal ["ssl://h:4000?min_version=1.3"], parse(iodine: Secured)[:bind]
    assert_equal ["ssl://h:4000"], parse("-tls", iodine: Secured)[:bind]
  end

  def test_mistakes_are_told
    {
      %w[-p] => "-p: missing argument", %w[-t x] => "threads must be a whole number, not \"x\"",
      %w[-b /a.sock -tls] => "TLS needs a port; /a.sock is a Unix socket"
    }.each do |arguments, message|
      assert_equal message, assert_raises(Fairlead::Error) { parse(*arguments) }.message
    end
    assert_equal ["-x: unknown option"], problems("-x")
  end

  private

  def flags(arguments, environment, iodine)
    Fairlead::Configuration::Flags.parse(Arguments.new(arguments, environment).for_fairlead(iodine))
  end

  def parse(*arguments, environment: {}, iodine: Unset)
    flags(arguments, environment, iodine).tap { |layer| assert_empty layer.problems }.settings.transform_values(&:value)
  end

  def problems(*arguments) = flags(arguments, {}, Unset).problems.map(&:to_s)
end
