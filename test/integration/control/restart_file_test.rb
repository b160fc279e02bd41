# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "support/http_client"

# `plugin :tmp_restart`: a touch restarts the server, with and without workers.
class RestartFileProcessTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  [["without_workers", []], ["with_workers", ["-w", "2"]]].each do |name, flags|
    define_method(:"test_a_touch_restarts_the_server_#{name}") do
      server = serve("run ->(env) { [200, {}, ['old']] }", *flags, files: { "config/fairlead.rb" => "plugin :tmp_restart", "tmp/restart.txt" => "" })
      server.write("config.ru", "run ->(env) { [200, {}, ['new']] }")
      FileUtils.touch(server.path("tmp/restart.txt"), mtime: Time.now + 5)
      wait_until("the new code", seconds: 20) { get(server).body == "new" }

      assert_equal 0, server.stop.exitstatus
    end
  end
end
