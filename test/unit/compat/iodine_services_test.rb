# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "support/apart"

# Serving from a plain program with Iodine.listen, Iodine::Rack and Iodine.start; the started services are inspected only.
class IodineServicesTest < Minitest::Test
  include Fairlead::Test::Apart

  APP = ->(_) { [200, {}, ["app"]] }

  # Replaces a Launcher.
  module Started
    class << self
      attr_accessor :configuration, :app

      def new(configuration, app:)
        @configuration = configuration
        @app = app
        self
      end

      def run = 0
    end
  end

  def setup
    ENV.delete_if { |name, _| Fairlead::Test::ServerProcess::CLEARED.include?(name) }
    require "fairlead/compat/iodine"
  end

  def test_an_address_and_an_application_are_served
    start(service: :http, handler: APP, port: 3456, address: "127.0.0.1")

    assert_equal ["tcp://127.0.0.1:3456"], configuration.bind
    assert_same APP, Started.app
  end

  def test_the_application_may_be_a_block_or_come_under_its_old_name
    Iodine.listen(port: 1) { |_env| [200, {}, ["block"]] }
    start

    assert_equal ["block"], Started.app.call({}).last

    assert_equal ["old"], Iodine::ListenOptions.new({ app: ->(_) { ["old"] } }, nil).app.call({})
  end

  def test_addresses_come_in_many_forms
    {
      { port: "3456", address: "::1" } => "tcp://[::1]:3456", { address: "/tmp/app.sock" } => "unix:///tmp/app.sock",
      { address: "./app.sock", port: 0 } => "unix://./app.sock", { url: "http://127.0.0.1:3456" } => "tcp://127.0.0.1:3456",
      { url: "unix:///tmp/app.sock" } => "unix:///tmp/app.sock", { port: 0, address: "127.0.0.1" } => "tcp://127.0.0.1:0",
      { address: "127.0.0.1" } => "tcp://127.0.0.1:3000"
    }.each { |settings, bind| assert_equal bind, Iodine::ListenOptions.new(settings, APP).bind, settings }
  end

  def test_limits_have_other_units
    start(handler: APP, max_body: 2, max_headers: 16, timeout: 7, log: true, max_clients: 50)

    assert_equal [2 << 20, 16 << 10, 7, true, 50],
                 [configuration.body_max_bytes, configuration.head_max_bytes, configuration.keep_alive_timeout, configuration.log_requests?,
                  configuration.max_connections]
  end

  def test_what_messages_and_pings_may_be_is_passed_on
    service = Iodine::ListenOptions.new({ max_msg: 250, ping: 30 }, APP)

    assert_equal({ message_max_bytes: 250 << 10, ping_interval: 30 }, service.options)
    service.options.each_key { |name| assert Fairlead::Options[name], name }
  end

  def test_several_addresses_share_an_application
    Iodine.listen(handler: APP, port: 1, address: "127.0.0.1")
    start(handler: APP, port: 2, address: "127.0.0.1")

    assert_equal %w[tcp://127.0.0.1:1 tcp://127.0.0.1:2], configuration.bind
  end

  def test_several_applications_are_too_many
    Iodine.listen(handler: APP, port: 1)
    error = assert_raises(NotImplementedError) { start(handler: ->(_) { [200, {}, []] }, port: 2) }

    assert_match(/Fairlead::Server/, error.message)
  end

  def test_what_is_no_http_says_what_to_use
    %w[raw tcp tls].each do |service|
      assert_match(/TCPServer/, assert_raises(NotImplementedError) { Iodine.listen(service: service, handler: APP) }.message)
    end
  end

  def test_mistakes_are_told
    assert_raises(ArgumentError) { Iodine.listen(handler: APP, prot: 1) }
    assert_raises(ArgumentError) { Iodine.listen(service: :gopher, handler: APP) }
    assert_raises(Fairlead::Error) { start }
    assert_raises(Fairlead::Error) { start(port: 1) }
  end

  def test_a_server_that_runs_is_not_started_again
    Fairlead::Launcher.current = Object.new

    assert_raises(Fairlead::Error) { Iodine.start }
    assert_raises(NotImplementedError) { Iodine.listen(handler: APP) }
  end

  def test_what_the_program_sets_counts
    Iodine.workers = 2
    Iodine.verbosity = 3
    start(handler: APP)

    assert_equal [2, true], [configuration.workers, configuration.quiet?]
  end

  def test_files_are_for_the_server_with_an_application_and_without
    Dir.mktmpdir do |folder|
      start(public: folder, handler: APP)

      assert_equal [folder, APP], [configuration.public_dir, Started.app]
    end
  end

  def test_files_can_do_without_an_application
    Dir.mktmpdir do |folder|
      start(public: folder)

      assert_equal [folder, 404], [configuration.public_dir, Started.app.call({}).first]
    end
  end

  def test_several_folders_are_too_many
    Iodine.listen(handler: APP, public: __dir__, port: 1)

    assert_raises(NotImplementedError) { start(handler: APP, public: ROOT, port: 2) }
  end

  def test_a_folder_that_is_not_there_is_told
    error = assert_raises(Fairlead::ConfigurationError) { start(public: "/nowhere/at/all") }

    assert_includes error.message, "Iodine.start: public_dir: must be an existing folder"
  end

  def test_the_settings_of_before_05_start_too
    Iodine::Rack.app = APP
    Iodine::Rack.port = 3456
    Iodine::Rack.address = "127.0.0.1"
    start

    assert_equal ["tcp://127.0.0.1:3456"], configuration.bind
    assert_same APP, Started.app
  end

  def test_the_rack_handler_serves
    with_launcher { Iodine::Rack.run(APP, { Port: 3456, Host: "127.0.0.1" }) }

    assert_equal ["tcp://127.0.0.1:3456"], configuration.bind

    with_launcher { Iodine::Rack.run(APP) }

    assert_match(/:3000\z/, configuration.bind.first)
    assert_nil configuration.public_dir
  end

  def test_the_rack_handler_has_a_folder
    Iodine::Rack.public = __dir__
    with_launcher { Iodine::Rack.run(APP, { Port: 3456 }) }

    assert_equal [__dir__, APP], [configuration.public_dir, Started.app]
  end

  private

  def start(settings = nil)
    Iodine.listen(settings) if settings
    with_launcher { Iodine.start }
  end

  def with_launcher(&block)
    Fairlead::Launcher.stub(:new, Started.method(:new), &block)
  end

  def configuration = Started.configuration
end
