# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

class CapybaraTest < Minitest::Test
  include Fairlead::Test::Folders

  # What Capybara does with a server, and no more of it.
  CAPYBARA = <<~RUBY
    module Capybara
      def self.register_server(name, &block) = (@servers ||= {})[name] = block
      def self.server(name) = @servers.fetch(name)
    end
  RUBY

  SCRIPT = <<~'RUBY'
    require "fairlead/capybara"
    require "net/http"
    require "socket"

    port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
    app = ->(_) { [200, {}, ["app #{Process.pid == $$}"]] }
    Thread.new { Capybara.server(:fairlead).call(app, port, "127.0.0.1", Silent: true) }.report_on_exception = true
    100.times do
      $stdout.syswrite(Net::HTTP.get(URI("http://127.0.0.1:#{port}/")))
      exit!(0)
    rescue Errno::ECONNREFUSED
      sleep 0.05
    end
  RUBY

  def test_it_is_registered_and_serves_on_the_thread_of_the_caller
    in_folder("capybara.rb" => CAPYBARA) do |folder|
      output, status = Open3.capture2e(RbConfig.ruby, "-w", "-I", folder, "-I", File.join(ROOT, "lib"), "-e", SCRIPT)

      assert_equal "app true", output
      assert_predicate status, :success?
    end
  end
end
