# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/http_client"

# A server with Puma's configuration file and command line.
class PumaFileTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = "run ->(env) { [200, {}, [ENV.fetch('RACK_ENV')]] }"

  FILE = <<~RUBY
    threads 2, 3
    workers ENV.fetch("WEB_CONCURRENCY", 2)
    environment ENV.fetch("RAILS_ENV") { "staging" }
    pidfile "server.pid"
    tag "shop"
    daemonize
    daemonize
    queue_requests false
    on_worker_boot(:numbers) { |index, numbers| numbers[:index] = index }
    on_worker_shutdown(:numbers) { |_, numbers| File.write("ended", "\#{numbers[:index]}\\n", mode: "a") }
    preload_app!
  RUBY

  def test_the_file_is_found_and_has_its_effect
    server = serve(APP, files: { "config/puma.rb" => FILE })

    assert_match(/2 workers, 2:3 threads each, staging/, server.stdout)
    assert_equal "staging", get(server).body
    assert_equal server.pid, Integer(File.read(server.path("server.pid")), 10)
    assert_predicate server.stop, :success?
    assert_equal %w[0 1], File.readlines(server.path("ended"), chomp: true).sort
  end

  def test_what_has_no_effect_is_warned_of_once
    server = serve(APP, files: { "config/puma.rb" => FILE })

    assert_equal ["config/puma.rb:6: daemonize", "config/puma.rb:8: queue_requests"],
                 server.stderr.scan(/warning: (\S+: \w+) has no effect: /).flatten
  end

  def test_a_gem_of_the_application_adds_a_hook_to_pumas_options
    app = <<~RUBY
      require "fairlead/compat/puma"
      Puma.cli_config.options[:before_worker_shutdown] << Proc.new { |index| File.write("gem", "\#{index}\n", mode: "a") }
      #{APP}
    RUBY
    [[], ["--preload"]].each do |flags|
      server = serve(app, "-w", "2", "-e", "staging", *flags)

      assert_predicate server.stop, :success?
      assert_equal %w[0 1], File.readlines(server.path("gem"), chomp: true).sort
    end
  end

  def test_a_command_line_for_puma_starts_the_server
    files = { "deploy/settings.rb" => "threads 1\nport 1", "app.ru" => APP, "config/puma.rb" => "raise 'not read'" }
    server = serve(nil, "-C", "deploy/settings.rb", "-t", "5:5", "-w", "1", "-e", "production", "--tag", "x", "-d", "app.ru", files: files)

    assert_match(/1 worker, 5:5 threads each, production/, server.stdout)
    assert_equal ["--daemon"], server.stderr.scan(/warning: (\S+): daemonize has no effect/).flatten
    assert_equal "production", get(server).body
  end

  def test_a_file_may_contain_the_application
    file = "port ENV.fetch('PORT', 0)\nset_default_host '127.0.0.1'\nclear_binds!\nport 0\napp { |env| [200, {}, [env['PATH_INFO']]] }"
    [0, 2].each do |workers|
      server = serve(nil, "-w", workers, bind: nil, files: { "config/puma.rb" => file })

      assert_equal "/here", get(server, "/here").body
    end
  end

  def test_the_configuration_can_be_logged
    server = serve(APP, files: { "config/puma.rb" => FILE }, environment: { "PUMA_LOG_CONFIG" => "1" })

    assert_match(%r{^(?:\[\d+\] )?pid_file +server\.pid +config/puma\.rb:4 \(pidfile\)$}, server.stdout)
  end

  def test_check_shows_whose_names_were_used_and_its_warnings_once
    check("config/puma.rb" => FILE, "config.ru" => APP) do |output, errors, status|
      assert_predicate status, :success?
      assert_match(%r{^preload +true +config/puma\.rb:11 \(preload_app!\)$}, output)
      assert_match(%r{^workers +2 +config/puma\.rb:2$}, output)
      assert_equal 2, errors.lines.size
    end
  end

  def test_encryption_is_not_replaced_by_plain_text
    check("config/puma.rb" => "\nssl_bind '0.0.0.0', 9292, keystore: 'a'", "config.ru" => APP) do |output, errors, status|
      assert_equal 1, status.exitstatus
      assert_empty output
      assert_match(/\Afairlead: config.puma\.rb:2: ssl_bind: .*there are no keystores/, errors)
    end
    check("config/puma.rb" => "\nssl_bind '0.0.0.0', 9292, key: 'a', cert: 'b'", "config.ru" => APP) do |_, errors, status|
      assert_equal 1, status.exitstatus
      assert_match(%r{\Afairlead: cannot listen on ssl://0\.0\.0\.0:9292: \S+/b: cannot be read}, errors)
    end
  end

  private

  # Returns the output of `fairlead --check`.
  def check(files)
    Dir.mktmpdir do |folder|
      files.each do |path, text|
        FileUtils.mkdir_p(File.dirname(File.join(folder, path)))
        File.write(File.join(folder, path), text)
      end
      command = [RbConfig.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/fairlead"), "--check"]
      yield Open3.capture3(Fairlead::Test::ServerProcess::CLEAN, *command, chdir: folder)
    end
  end
end
