# frozen_string_literal: true

require "test_helper"
require "net/http"
require "support/http_client"

# Sources of a setting (flags, the configuration file, the environment, in that order), and its effect in the running server.
class SourcesTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = "run ->(env) { [200, {}, ['hello']] }"

  READY = /ready in \w+ mode \(ruby \S+, pid \d+, (.*)\)/

  def test_flags_win_over_the_file_and_the_file_over_the_environment
    file = { "some.rb" => "threads 2, 4\nenvironment 'staging'\n" }
    environment = { "MAX_THREADS" => "9", "RACK_ENV" => "production", "WEB_CONCURRENCY" => "1" }

    assert_equal "1 worker, 0:9 threads each, production", summary(environment: environment)
    assert_equal "1 worker, 2:4 threads each, staging", summary("-C", "some.rb", files: file, environment: environment)
    assert_equal "3:3 threads, test", summary("-C", "some.rb", "-t", 3, "-e", "test", "-w", 0, files: file, environment: environment)
  end

  def test_the_configuration_file_of_the_environment_is_found_without_being_named
    files = { "config/fairlead.rb" => "threads 2", "config/fairlead/production.rb" => "threads 7" }

    assert_equal "2:2 threads, development", summary(files: files)
    assert_equal "7:7 threads, production", summary(files: files, environment: { "RAILS_ENV" => "production" })
    assert_equal "0:5 threads, development", summary("-C", "-", files: files)
  end

  def test_the_port_may_come_from_the_environment
    port = TCPServer.open("127.0.0.1", 0) { |server| server.local_address.ip_port }
    server = serve(APP, bind: nil, environment: { "PORT" => port.to_s })

    assert_equal [port], server.ports
    assert_equal "hello", Net::HTTP.get("127.0.0.1", "/", port)
  end

  def test_every_binding_is_served_and_told_with_the_port_it_got
    server = serve(APP, "-b", "unix://app.sock?mode=0600", "-b", "tcp://[::1]:0")
    first, second = server.ports

    assert_equal %w[hello hello], [Net::HTTP.get("127.0.0.1", "/", first), Net::HTTP.get("::1", "/", second)]
    assert_equal "hello", adopt(UNIXSocket.new(server.path("app.sock"))).get.body
    assert_equal 0o600, File.stat(server.path("app.sock")).mode & 0o777
    server.stop
    refute_path_exists server.path("app.sock")
  end

  def test_folders_may_be_put_on_the_load_path
    server = serve("require 'greeting'\nrun ->(env) { [200, {}, [GREETING]] }", "-I", "other:greetings",
                   files: { "greetings/greeting.rb" => "GREETING = 'welcome'" })

    assert_equal "welcome", get(server).body
  end

  def test_the_folder_may_be_another_one
    server = serve(nil, "--dir", "app",
                   files: { "app/app.ru" => "run ->(env) { [200, {}, [Dir.pwd]] }", "app/config/fairlead.rb" => "rackup 'app.ru'" })

    assert_equal server.path("app"), get(server).body
  end

  def test_sizes_and_times_have_their_effect
    server = serve(APP, "--body-max-bytes", "2k", "--target-max-bytes", "100", "--head-max-fields", "8")

    assert_equal 413, ask(server, "POST", "/", {}, "x" * 3000).status
    assert_equal 414, get(server, "/#{"x" * 200}").status
    assert_equal 431, get(server, "/", (1..9).to_h { |n| ["x-#{n}", n] }).status
  end

  private

  # Returns the server's summary when it is ready.
  def summary(*arguments, **options)
    server = serve(APP, *arguments, **options)
    server.wait_for_output(READY)[1].sub(/CPU quota [\d.]+, /, "")
  end
end
