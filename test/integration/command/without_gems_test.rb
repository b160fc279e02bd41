# frozen_string_literal: true

require "test_helper"
require "support/http_client"

# `ruby --disable-gems`: then Ruby loads neither Gem nor RbConfig.
class WithoutGemsTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients

  APP = "run ->(env) { [200, {}, [defined?(Gem).inspect]] }"

  def test_a_server_with_workers_starts_and_restarts
    folders = [File.join(Fairlead::Test::ServerProcess::ROOT, "lib"), *Gem::Specification.find_by_name("rack").full_require_paths]
    environment = { "RUBYOPT" => "--disable-gems", "RUBYLIB" => folders.join(File::PATH_SEPARATOR) }
    server = serve(APP, "-w", "2", environment: environment)
    assert_equal("nil", get(server).body)
    server.signal(:USR1)
    wait_until("the restart") { server.stdout.include?("phased restart: done") }
    assert_equal("nil", get(server).body)
    assert_empty(server.stderr)
    assert_predicate(server.stop, :success?)
  end
end
