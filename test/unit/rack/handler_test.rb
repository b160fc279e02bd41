# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "rack"

# The options of rackup and Rails, and the configuration that they result in. Integration tests cover the serving.
class HandlerTest < Minitest::Test
  include Fairlead::Test::Folders

  # Options from `rails server`.
  RAILS = {
    Port: 3000, Host: "localhost", DoNotReverseLookup: true, environment: "development", daemonize: false, pid: "tmp/pids/server.pid",
    caching: nil, restart_cmd: "bin/rails server", early_hints: nil, log_stdout: true, server: "fairlead", config: "config.ru",
    AccessLog: [], user_supplied_options: []
  }.freeze

  def test_rack_finds_it
    name = defined?(Rack::Handler) ? "rack" : "rackup"
    require "#{name}/handler"
    handler = Object.const_get(name.capitalize)::Handler.get("fairlead")

    assert_kind_of Fairlead::Handler, handler
    assert_equal %w[Host=HOST Port=PORT Threads=MIN:MAX Verbose Silent], handler.valid_options.keys
  end

  def test_host_and_port_are_an_address
    assert_equal ["tcp://localhost:3000"], configuration(Host: "localhost", Port: "3000").bind
    assert_equal ["tcp://[::1]:9292"], configuration(Host: "::1").bind
    assert_equal [Fairlead::Binding.address_for_port(3000)], configuration(Port: 3000).bind
    assert_equal ["unix:///run/app.sock"], configuration(Host: "/run/app.sock", Port: 9292).bind
  end

  def test_a_host_may_be_a_socket_without_a_file
    linux_only("abstract sockets")

    assert_equal ["unix://@app"], configuration(Host: "@app").bind
  end

  def test_a_host_may_be_an_address
    assert_equal ["tcp://127.0.0.2:3000"], configuration(Host: "tcp://127.0.0.2", Port: 3000).bind
    assert_equal ["tcp://[::1]:4000"], configuration(Host: "tcp://[::1]:4000", Port: 3000).bind
    assert_equal ["tcp://[::1]:9292?backlog=5"], configuration(Host: "tcp://[::1]?backlog=5").bind
    assert_equal ["unix:///run/app.sock"], configuration(Host: "unix:///run/app.sock", Port: 3000).bind
  end

  def test_an_address_with_tls_gets_the_port_too
    assert_equal ["ssl://[::1]:3000?key=a&cert=b"], configuration(Host: "ssl://[::1]?key=a&cert=b", Port: 3000).bind
  end

  def test_other_names_and_our_own_are_understood_and_foreign_ones_ignored
    made = configuration(Threads: "1:3", Verbose: true, Silent: true, environment: "test", workers: 2, config: "x.ru", pid: "x", SSLEnable: true)

    assert_equal [1, 3, true, true, "test", 2, [], nil],
                 [made.min_threads, made.max_threads, made.log_requests?, made.quiet?, made.environment, made.workers, made.config, made.pid_file]
  end

  def test_what_rails_fills_in_does_not_win_over_the_configuration_file
    in_folder("config/fairlead.rb" => "bind 'tcp://127.0.0.1:4000'\nenvironment 'staging'") do
      assert_equal ["tcp://127.0.0.1:4000"], configuration(**RAILS).bind
      assert_equal "staging", configuration(**RAILS).environment
    end
  end

  def test_what_rails_fills_in_counts_where_nobody_says_otherwise
    in_folder { assert_equal ["tcp://localhost:3000"], configuration(**RAILS).bind }
  end

  def test_a_port_of_the_configuration_file_is_on_the_host_that_rails_fills_in
    in_folder("config/fairlead.rb" => "port 4000") do
      assert_equal [["tcp://localhost:4000"], "localhost"], with_host(**RAILS)
      assert_equal [[Fairlead::Binding.address_for_port(4000)], nil], with_host(**RAILS, Host: nil)
      assert_equal [[Fairlead::Binding.address_for_port(4000)], nil], with_host(**RAILS, Host: "/run/app.sock")
      assert_equal [[Fairlead::Binding.address_for_port(4000)], nil], with_host(**RAILS, Host: "0.0.0.0")
    end
  end

  def test_a_host_of_the_configuration_file_stays
    in_folder("config/fairlead.rb" => "port 4000, '127.0.0.2'") do
      assert_equal [["tcp://127.0.0.2:4000"], nil], with_host(**RAILS)
    end
  end

  def test_no_port_of_the_configuration_file_is_none_with_a_host_either
    in_folder("config/fairlead.rb" => "port nil") { assert_equal [["tcp://localhost:3000"], nil], with_host(**RAILS) }
  end

  def test_what_was_given_to_rails_wins
    in_folder("config/fairlead.rb" => "bind 'tcp://127.0.0.1:4000'") do
      assert_equal ["tcp://localhost:5000"], configuration(**RAILS, Port: 5000, user_supplied_options: [:Port]).bind
    end
    in_folder("config/fairlead.rb" => "port 4000") do
      assert_equal [["tcp://0.0.0.0:3000"], nil], with_host(**RAILS, Host: "0.0.0.0", user_supplied_options: [:Host])
    end
  end

  private

  def with_host(**options)
    made = configuration(**options)
    [made.bind, made.default_host]
  end

  # Returns the configuration that the launcher gets.
  def configuration(**options)
    made = nil
    Fairlead::Launcher.stub(:new, ->(given, **) { made = given }) do
      Object.new.extend(Fairlead::Handler).send(:launcher, nil, options)
    end
    made
  end
end
