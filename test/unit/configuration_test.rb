# frozen_string_literal: true

require "test_helper"
require "minitest/mock"

class ConfigurationTest < Minitest::Test
  include Fairlead::Test::Folders

  Configuration = Fairlead::Configuration

  def test_flags_win_over_the_file_the_file_over_the_environment_and_that_over_the_default
    in_folder("config/fairlead.rb" => "workers 2\nbacklog 20\ntag 'file'\n") do
      configuration = load("-w", "1", environment: { "WEB_CONCURRENCY" => "3", "MAX_THREADS" => "9" })

      assert_equal [1, 20, 9, 0], %i[workers backlog max_threads min_threads].map { |name| configuration[name] }
      assert_equal ["--workers", "config/fairlead.rb:2", "MAX_THREADS", "default"],
                   %i[workers backlog max_threads min_threads].map { |name| configuration.origin(name) }
    end
  end

  def test_addresses_of_one_source_gather_and_replace_those_of_the_next
    in_folder("config/fairlead.rb" => "bind 'tcp://127.0.0.1:1'\nport 2, '127.0.0.1'") do
      assert_equal %w[tcp://127.0.0.1:1 tcp://127.0.0.1:2], load.bind
      assert_equal %w[tcp://127.0.0.1:3], load("-b", "tcp://127.0.0.1:3").bind
      assert_equal %w[tcp://127.0.0.1:1 tcp://127.0.0.1:2], load(environment: { "PORT" => "3" }).bind
    end
  end

  def test_the_port_of_the_environment_is_listened_on
    assert_equal [Fairlead::Binding.address_for_port(4567)], in_folder { load(environment: { "PORT" => "4567" }) }.bind
  end

  def test_every_problem_of_every_source_is_told_at_once
    in_folder("config/fairlead.rb" => "workers '-1'\n\nhead_timeout 'x'") do
      error = assert_raises(Fairlead::ConfigurationError) { load("--backlog", "65536", environment: { "WEB_CONCURRENCY" => "x" }) }

      assert_equal %i[backlog workers head_timeout workers], error.problems.map(&:option)
      assert_equal ["--backlog", "config/fairlead.rb:1", "config/fairlead.rb:3", "WEB_CONCURRENCY"], error.problems.map(&:origin)
      assert_includes error.message, "--backlog: must be a whole number from 0 to 65535, not \"65536\"\nconfig/fairlead.rb:1: workers: must be"
    end
  end

  def test_fewer_threads_at_most_than_at_least_are_a_problem
    error = assert_raises(Fairlead::ConfigurationError) { in_folder { load("-t", "6:5") } }

    assert_equal "--threads: is 6, more than max_threads (5)", error.message
  end

  def test_the_application_is_preloaded_when_more_than_one_worker_shares_it
    in_folder do
      assert_equal [false, false, true], [0, 1, 2].map { |count| load("-w", count.to_s).preload? }
      assert_equal false, load("-w", "2", "--no-preload").preload?
    end
  end

  def test_it_cannot_be_changed
    configuration = Configuration.from_options({})

    assert_predicate configuration, :frozen?
    assert_raises(FrozenError) { configuration.hooks.add(:before_fork, -> {}) }
    assert_raises(FrozenError) { configuration.warnings << "x" }
  end

  def test_the_engine_gets_every_option_of_its_scope_and_no_other
    settings = Configuration.from_options(threads: [1, 2], head_timeout: 7, body_max_bytes: "2k").engine_settings

    assert_equal Fairlead::Options.settings.select(&:engine?).map(&:name), settings.keys
    assert_equal [1, 2, 7.0, 2048], settings.values_at(:min_threads, :max_threads, :head_timeout, :body_max_bytes)
    assert_equal %i[rack_url_scheme hsts public_dir], settings.select { |_, value| value.nil? }.keys
  end

  def test_an_embedded_server_takes_neither_the_environment_nor_unknown_options
    error = assert_raises(Fairlead::ConfigurationError) { Configuration.from_options(thread: 1, bind: ["tcp://127.0.0.1:1", "x"]) }

    assert_equal %i[thread bind], error.problems.map(&:option)
  end

  def test_settings_without_effect_are_warned_of
    in_folder("config/fairlead.rb" => "before_fork { }\npreload true\nafter_booted { }") do
      assert_equal ["before_fork never runs, because there are no workers", "config/fairlead.rb:2: preload has no effect without workers"],
                   load.warnings
      assert_empty load("-w", "1").warnings
    end
  end

  def test_more_connections_than_the_open_files_leave_are_warned_of
    limit = Process.getrlimit(:NOFILE).last
    skip "the limit is high" if limit >= 10_000_000
    asked = [limit, limit * 19 / 20].map { |count| load("--max-connections", count.to_s).warnings }

    asked.each do |warnings|
      assert_match(/\A--max-connections: a process can have only \d+, because its limit of open files \(ulimit -Hn\) is #{limit}\z/, warnings.first)
    end
    most = asked.first.first[/only (\d+)/, 1].to_i
    assert_includes limit / 2..limit * 7 / 8, most
    assert_empty load("--max-connections", (most - 100).to_s).warnings
  end

  def test_options_that_need_another_one_are_warned_of
    in_folder("config/fairlead.rb" => "public_hidden true\ncompress_types 'text/*'") do
      assert_equal ["config/fairlead.rb:1: public_hidden: has no effect without public_dir",
                    "--public-cache-control: has no effect without public_dir",
                    "config/fairlead.rb:2: compress_types: has no effect without compress"],
                   load("--public-cache-control", "*: no-cache").warnings
      assert_empty load("--public", ".", "--compress").warnings
    end
  end

  def test_what_an_option_needs_is_an_option
    Fairlead::Options.settings.filter_map(&:needs).each { |name| assert_includes Fairlead::Options.settings.map(&:name), name }
  end

  def test_threads_that_change_their_native_one_are_refused
    refute Configuration.mn_scheduler?("ruby 3.3.13 (2026-10-23 revision af48f08f21) [x86_64-linux-gnu]")
    assert Configuration.mn_scheduler?("ruby 3.3.13 (2026-10-23 revision af48f08f21) +MN [x86_64-linux-gnu]")
    Configuration.stub(:mn_scheduler?, true) do
      [-> { load }, -> { Configuration.from_options({}) }].each do |make|
        assert_match(/\ARUBY_MN_THREADS: .+\z/, assert_raises(Fairlead::ConfigurationError) { make.call }.message)
      end
    end
  end

  def test_requests_are_logged_where_the_options_say
    assert_nil Configuration.from_options({}).access_log_path
    assert_equal "-", Configuration.from_options(log_requests: true).access_log_path
    assert_nil Configuration.from_options(log_requests: true, quiet: true).access_log_path
    assert_equal "a.log", Configuration.from_options(access_log: "a.log", quiet: true).access_log_path
  end

  private

  def load(*arguments, environment: {})
    Configuration.load(Configuration::Flags.parse(arguments), environment: environment)
  end
end
