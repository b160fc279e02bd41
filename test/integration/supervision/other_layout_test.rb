# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# A restart to a version of Fairlead with another layout of the shared memory.
class OtherLayoutTest < Minitest::Test
  include Fairlead::Test::Supervision

  # Loaded before each program of the server: turns it into such a version.
  OTHER = <<~'RUBY'
    if File.exist?("other")
      require "fairlead"
      Fairlead::Native::Shared.send(:remove_const, :LAYOUT)
      Fairlead::Native::Shared::LAYOUT = "another layout"
    end
  RUBY

  %i[USR1 USR2].each do |signal|
    kind = signal == :USR1 ? "phased restart" : "hot restart"
    define_method(:"test_#{signal}_to_an_application_that_cannot_be_loaded_leaves_a_server_that_works") do
      server = supervised(2, "--preload", files: { "other.rb" => OTHER }, environment: { "RUBYOPT" => "-I. -rother" })
      serving = server.worker_pids
      server.write("other", "")
      server.write("version", "broken")
      server.signal(signal)
      assert_refused(server, //, serving, kind: kind)
      serving.each { |worker| assert_replaces(server, worker) }
      File.unlink(server.path("other"))

      assert_restarts(server)
      assert_ends(server)
    end
  end
end
