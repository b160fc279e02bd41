# frozen_string_literal: true

require "test_helper"

class ConfigurationEmbeddedLayerTest < Minitest::Test
  Options = Fairlead::Options

  def test_every_option_of_the_command_is_refused_and_no_other
    options = Options.settings.select(&:in_file?)
    refused = options.select { |option| problems(option.name => option.valid.first).any? }

    assert_equal options.reject { |option| option.embedded? || default?(option) }.map(&:name), refused.map(&:name)
    assert_includes refused.map(&:name), :workers
    refute_includes refused.map(&:name), :max_threads
  end

  def test_the_reason_is_told_with_the_name
    error = assert_raises(Fairlead::ConfigurationError) { Fairlead::Configuration.embedded(workers: 2, pidfile: "a.pid") }

    assert_equal ["Fairlead::Server: workers: has no meaning for a server inside another program",
                  "Fairlead::Server: pid_file: has no meaning for a server inside another program"], error.problems.map(&:to_s)
  end

  def test_what_is_the_case_anyway_may_be_said
    assert_empty problems(workers: 0, preload: false, pid_file: nil, waiting_room: true, bind_to_activated_sockets: false)
  end

  def test_a_shorthand_counts_as_what_it_sets
    assert_equal %i[redirect_stdout redirect_stderr], problems(stdout_redirect: %w[out errors]).map(&:option)
    assert_empty problems(threads: [1, 2], port: 0)
  end

  private

  # Returns true if its example is the default.
  def default?(option) = option.type.parse(option.valid.first) == option.default(workers: 0, directory: "/")

  def problems(options) = Fairlead::Configuration::EmbeddedLayer.from(options, origin: "Fairlead::Server").problems
end
