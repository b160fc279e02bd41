# frozen_string_literal: true

require "test_helper"

# Calls in configuration files for Puma, besides options and hooks.
class ConfigurationPumaMethodsTest < Minitest::Test
  include Fairlead::Test::Folders

  Configuration = Fairlead::Configuration
  Options = Fairlead::Options

  Configuration::Accepted.each do |entry|
    next unless entry.instead

    define_method(:"test_#{entry.name}_is_accepted_with_a_warning") do
      file = read("\n#{entry.name} 'other'\n#{entry.name} 'again'\nbacklog 3")

      assert_empty file.problems
      assert_equal ["config/puma.rb:2: #{entry.name} has no effect: #{entry.instead}"], file.warnings
      assert_equal 3, file[:backlog]
    end

    entry.same.each do |value|
      define_method(:"test_#{entry.name}_with_#{value.inspect}_changes_nothing_and_is_not_worth_a_warning") do
        assert_empty read("#{entry.name} #{value.inspect}").warnings
      end
    end
  end

  def test_what_needs_no_warning_gets_none
    file = read("silence_single_worker_warning")

    assert_empty file.problems + file.warnings
  end

  def test_nothing_that_is_only_accepted_is_an_option_or_a_hook
    names = Options.flat_map(&:methods_in_file) + Fairlead::Hooks::NAMES.keys + Fairlead::Hooks::ALIASES.keys

    assert_empty Configuration::Accepted.map(&:name) & names
    assert_empty Configuration::PumaMethods.instance_methods(false) & names
  end

  def test_a_restart_does_not_start_puma
    file = read("restart_command 'bundle exec puma'\nrestart_command '/usr/bin/puma -C x'\nbacklog 2")

    assert_equal [nil, 2], [file[:restart_command], file[:backlog]]
    assert_match(/\Aconfig\/puma\.rb:1: restart_command has no effect: it would start Puma; /, file.warnings.first)
    assert_equal 1, file.warnings.size
    assert_equal "bundle exec fairlead", read("restart_command 'bundle exec fairlead'")[:restart_command].then { |words| Array(words).join(" ") }
    assert_nil Configuration::Flags.parse(["-R", "puma"])[:restart_command]
  end

  def test_addresses_with_tls_are_those_of_puma
    file = read("ssl_bind '0.0.0.0', '443', { cert: 'c.pem', key: 'k.pem', no_tlsv1: true }\nbind 'ssl://[::1]:444?key=k&cert=c'")

    assert_equal ["ssl://0.0.0.0:443?cert=c.pem&key=k.pem&no_tlsv1=true", "ssl://[::1]:444?key=k&cert=c"], file[:bind]
  end

  def test_what_only_puma_can_do_with_tls_is_an_error
    { "keystore: 'k.jks'" => "there are no keystores", "ssl_cipher_filter: 'HIGH'" => "the cipher suites are not chosen" }.each do |parameters, text|
      problem, = problems("ssl_bind '0.0.0.0', 443, #{parameters}")
      assert_match(%r{\Aconfig/puma.rb:1: ssl_bind: cannot listen on ssl://0\.0\.0\.0:443: .*#{text}}, problem)
    end
  end

  def test_a_port_without_a_host_gets_the_default_host
    file = read("set_default_host '127.0.0.1'\nport 1\nport 2, '::1'\ntag default_host")

    assert_equal [%w[tcp://127.0.0.1:1 tcp://[::1]:2], "127.0.0.1"], [file[:bind], file[:tag]]
    assert_equal Fairlead::Binding.any_host, read("tag default_host")[:tag]
  end

  def test_the_default_host_of_the_file_comes_before_that_of_the_caller
    host = ->(text) { read(text, callers_host: "localhost").then { |file| [file[:bind], file.uses_callers_host?] } }

    assert_equal [["tcp://localhost:1"], true], host["port 1"]
    assert_equal [["tcp://127.0.0.1:1"], false], host["set_default_host '127.0.0.1'\nport 1"]
  end

  def test_addresses_can_be_taken_back
    assert_equal ["tcp://127.0.0.1:2"], read("port 1\nclear_binds!\nbind 'tcp://127.0.0.1:2'")[:bind]
    assert_nil read("port 1\nclear_binds!")[:bind]
  end

  def test_the_application_may_be_in_the_file
    assert_equal 204, read("app { |env| [204, {}, []] }").app.call({}).first
    assert_equal 205, read("app ->(env) { [205, {}, []] }").app.call({}).first
    assert_equal ["config/puma.rb:1: app: needs an application or a block"], problems("app")
  end

  def test_a_file_may_load_another_one
    file = read("workers 1\nload 'other.rb'\nworkers 3", { "other.rb" => "\nworkers 2\nbacklog 7\nbefore_fork { }" })

    assert_equal [3, "config/puma.rb:3"], file.settings[:workers].to_a
    assert_equal [7, "other.rb:3"], file.settings[:backlog].to_a
    assert_equal [:before_fork], file.hooks.names
    assert_equal ["nowhere.rb: cannot be read (No such file or directory)"], problems("load 'nowhere.rb'")
  end

  def test_a_block_may_be_put_in
    assert_equal 4, read("inject { workers 4 }")[:workers]
  end

  def test_values_can_be_read_back_by_our_names_and_by_pumas
    file = read(<<~RUBY)
      workers 2
      bind "tcp://127.0.0.1:1"
      threads 1, get(:workers) + 2
      tag [get(:max_threads), get(:binds), @options[:persistent_timeout], get("nothing", :else)].inspect
      @options[:workers] = get(:workers) * 2
      @options[:binds] = ["tcp://127.0.0.1:2"]
    RUBY

    assert_equal [4, 4, '[4, ["tcp://127.0.0.1:1"], nil, :else]', ["tcp://127.0.0.1:2"]],
                 %i[workers max_threads tag bind].map { |name| file[name] }
    assert_equal "config/puma.rb:5 (options[:workers])", file.settings[:workers].origin
    assert_equal ["config/puma.rb:1 (options[:workers]): workers: must be a whole number from 0 to 64, or auto, not \"x\""],
                 problems("@options[:workers] = 'x'")
  end

  def test_a_file_that_names_puma_sees_and_changes_what_the_command_line_has_set
    text = <<~RUBY
      threads 1, 2
      options = Puma.cli_config._options
      options[:workers] = 4 if options[:workers] == 2
      options[:max_threads] = 9 if options[:max_threads] == 2
    RUBY
    values = apart do
      in_folder("config/puma.rb" => text) { load("-w", "2").then { |settings| [settings.workers, settings.max_threads, settings.origin(:workers)] } }
    end

    assert_equal [4, 9, "config/puma.rb:3 (options[:workers])"], values
    refute Object.const_defined?(:Puma)
  end

  def test_blocks_for_one_mode_run_after_the_file_and_only_in_that_mode
    text = "single { tag 'alone' }\ncluster { tag 'many'\nthreads 1, 2 }\nworkers 2\ntag 'first'"

    in_folder("config/puma.rb" => text) do
      assert_equal ["many", 2], load.then { |configuration| [configuration.tag, configuration.max_threads] }
      assert_equal ["alone", 5], load("-w", "0").then { |configuration| [configuration.tag, configuration.max_threads] }
    end
    assert_equal ["config/puma.rb:1: cluster: needs a block"], problems("cluster")
  end

  def test_an_exception_in_such_a_block_is_a_problem_with_its_line
    in_folder("config/puma.rb" => "single {\nraise 'oh' }") do
      assert_equal "config/puma.rb:2: oh (RuntimeError)", assert_raises(Fairlead::ConfigurationError) { load }.message
    end
  end

  def test_hooks_with_the_same_key_share_a_hash
    file = read(<<~RUBY)
      seen = @seen = []
      on_worker_boot(:data) { |index, data| data[:index] = index }
      before_worker_shutdown(:data) { |_, data| seen << data[:index] }
      after_booted { seen << :booted }
    RUBY
    seen = file.instance_variable_get(:@script).instance_variable_get(:@seen)
    file.hooks.run(:before_worker_boot, 3, log: nil)
    file.hooks.run(:before_worker_shutdown, 3, log: nil)
    file.hooks.run(:after_booted, log: nil)

    assert_equal [3, :booted], seen
  end

  def test_the_rackup_file_of_old_files_has_its_constant
    assert_equal "config.ru", read("rackup DefaultRackup")[:rackup]
    assert_match(/uninitialized constant .*DefaultRakcup \(NameError\)/, problems("rackup DefaultRakcup").first)
    refute Object.const_defined?(:DefaultRackup)
  end

  def test_parts_of_puma_that_are_not_there_are_not_missed
    file = read("\nrequire 'puma/nowhere'\nrequire 'puma/nowhere'\nbacklog 2")

    assert_empty file.problems
    assert_equal ["config/puma.rb:2: require \"puma/nowhere\" has no effect: there is no such file, and Fairlead needs none of Puma"],
                 file.warnings
    assert_equal 2, file[:backlog]
    assert_match(/cannot load such file/, problems("require 'pumanowhere'").first)
  end

  def test_quiet_means_in_a_file_for_puma_what_it_means_there
    assert_equal [false, nil], read("quiet").then { |file| [file[:log_requests], file[:quiet]] }
    assert_equal [true, nil], read("quiet false").then { |file| [file[:log_requests], file[:quiet]] }
    in_folder("config/fairlead.rb" => "quiet") { assert_predicate load, :quiet? }
    in_folder("config/puma/production.rb" => "quiet") { refute_predicate load("-e", "production"), :quiet? }
  end

  def test_first_data_timeout_limits_head_and_body
    assert_equal [7, 7], read("first_data_timeout '7'").then { |file| [file[:head_timeout], file[:body_timeout]] }
  end

  def test_an_application_with_a_pruned_bundle_is_preloaded_only_where_the_file_says_so
    preload = ->(text) { in_folder("config/puma.rb" => "workers 2\n#{text}") { load.preload? } }

    assert_equal [true, false, true, true], ["", "prune_bundler", "prune_bundler\npreload_app!", "prune_bundler false"].map(&preload)
  end

  def test_hooks_that_never_run_can_be_silenced
    in_folder("config/puma.rb" => "silence_fork_callback_warning\nbefore_fork { }") { assert_empty load.warnings }
  end

  private

  # Returns the result of the block from a child process, because it loads files.
  def apart
    reader, writer = IO.pipe
    pid = fork { writer.write(Marshal.dump(yield)).then { exit!(true) } }
    writer.close
    Marshal.load(reader.read) # rubocop:disable Security/MarshalLoad -- our own child wrote it
  ensure
    Process.wait(pid)
  end

  def read(text, files = {}, callers_host: nil)
    in_folder({ "config/puma.rb" => text }.merge(files)) { Configuration::ConfigFile.new("config/puma.rb", callers_host: callers_host).read }
  end

  def problems(text) = read(text).problems.map(&:to_s)

  def load(*arguments)
    Configuration.load(Configuration::Flags.parse(arguments), environment: {})
  end
end
