# frozen_string_literal: true

require "test_helper"
require "logger"
require "stringio"

class SupervisorSettingsTest < Minitest::Test
  include Fairlead::Test::Folders

  def setup
    Fairlead::RestartCommand.note
  end

  def test_times_and_numbers_are_those_of_the_configuration
    limits = settings(workers: 3, shutdown_timeout: 7, long_drain: 600, worker_settle_time: 0.5, load_timeout: 90).to_h[:limits]

    assert_equal [3, 7, 600, 0.5, 90], limits.values_at(:workers, :shutdown_timeout, :long_drain, :settle_time, :load_timeout)
  end

  def test_the_line_that_says_ready_has_the_id_of_the_supervisor
    assert_match(/ready in cluster mode \(ruby .*, pid 4711, 1 worker,/, settings(workers: 1).to_h[:ready])
  end

  def test_paths_are_absolute_and_bytes_become_characters
    in_folder({}) do
      folder = SystemText.current
      all = settings(pidfile: "server.pid", state_path: "caf\xE9.state".b, plugin: "tmp_restart").to_h

      assert_equal "#{folder}/server.pid", all[:pid_file]
      assert_equal "#{folder}/caf\u00E9.state", all[:state_file][:path]
      assert_equal [0o600, folder], all[:state_file].values_at(:mode, :running_from)
      assert_equal "#{folder}/tmp/restart.txt", all[:restart_file]
    end
  end

  def test_a_log_that_only_ruby_can_write_is_told_of
    refute by_ruby?(Fairlead::EventLog.new(output: $stdout, errors: $stderr))
    assert by_ruby?(Fairlead::EventLog.new(output: $stdout, errors: $stderr, formatter: ->(text) { text }))
    assert by_ruby?(Fairlead::EventLog.new(logger: Logger.new($stdout)))
    assert by_ruby?(Fairlead::EventLog.new(output: StringIO.new, errors: $stderr))
  end

  def test_listeners_are_named_by_their_places_among_the_descriptors
    configuration = configuration(control_url: "tcp://127.0.0.1:0", control_token: "secret")
    sockets = Fairlead::Control::Sockets.new(configuration).open
    service = service(configuration).open
    named = Fairlead::SupervisorSettings.new(service, pid: 1, sockets: sockets)
    listener, control = named.to_h.values_at(:listeners, :control)

    assert_equal [[0, "tcp://127.0.0.1:0", nil, false]], listener.map { |one| one.values_at(:descriptor, :binding, :file, :kept) }
    assert_equal [1, "secret", false], [control[:listener][:descriptor], control[:token], control[:data_only]]
    assert_equal "tcp://127.0.0.1:#{sockets.control.port}", control[:url]
    assert_equal [service.listeners.first, sockets.control], named.ios
  ensure
    [service, sockets].compact.each { |one| one.respond_to?(:remove) ? one.remove : one.close }
  end

  def test_the_file_can_be_read_by_a_program
    text = settings.file.then { |file| file.pread(file.stat.size, 0) }

    assert_equal [1, Fairlead::VERSION, Fairlead::Native::Shared::LAYOUT], JSON.parse(text).values_at("protocol", "version", "layout")
  end

  private

  SystemText = Fairlead::SystemText

  def configuration(**options)
    Fairlead::Configuration.from_options({ bind: "tcp://127.0.0.1:0", environment: "production", **options })
  end

  def by_ruby?(log)
    service = Fairlead::Service.new(configuration, log: log).adopt([], [])
    Fairlead::SupervisorSettings.new(service, pid: 1).to_h[:log][:by_ruby]
  end

  def service(configuration)
    Fairlead::Service.new(configuration, log: Fairlead::EventLog.new(output: StringIO.new, errors: StringIO.new))
  end

  # Settings of a service without listeners.
  def settings(**options)
    service = service(configuration(**options)).adopt([], [])
    Fairlead::SupervisorSettings.new(service, pid: 4711)
  end
end
