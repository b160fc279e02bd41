# frozen_string_literal: true

require "test_helper"
require "support/certificates"
require "support/launched_by"
require "support/real_time"

# A plain program that serves with Agoo::Server, written for agoo.
class AgooProgramTest < Minitest::Test
  include Fairlead::Test::RealTimeServing
  include Fairlead::Test::Secured

  PROGRAM = <<~'RUBY'
    require "fairlead/compat/agoo"
    $stdout.sync = true

    class Listen
      def self.call(env)
        return [404, {}, []] if env["rack.upgrade?"].nil?

        env["rack.upgrade"] = self
        [200, {}, []]
      end

      def self.on_open(client)
        client.subscribe("time.*")
        client.write("on")
      end
    end

    threads = Integer(ARGV.first, 10)
    Agoo::Server.init(0, "root", bind: "http://127.0.0.1:0", thread_count: threads)
    Agoo::Server.handle(:GET, "/hello/*", ->(env) { [200, {}, ["hello #{env["PATH_INFO"]}"]] })
    Agoo::Server.handle(:GET, "/upgrade", Listen)
    Thread.new { loop { sleep 0.05; Agoo.publish("time.now", "tick") } }
    Agoo::Server.start
    puts "fairlead inside ready" if threads.positive?
    sleep if threads.positive?
  RUBY

  # Continues beside the server, and ends it once there is a file named "end".
  ENDING = <<~'RUBY'
    require "fairlead/compat/agoo"
    $stdout.sync = true

    Agoo::Server.init(0, nil, bind: "http://127.0.0.1:0", thread_count: 2)
    Agoo::Server.handle(:GET, "/one", ->(_) { [200, {}, ["one"]] })
    Agoo::Server.start
    puts "fairlead inside ready"
    sleep 0.01 until File.exist?("end")
    Agoo.shutdown
    puts "the program goes on"
    sleep
  RUBY

  # One address with TLS and one without.
  WITH_TLS = <<~'RUBY'
    require "fairlead/compat/agoo"

    Agoo::Server.init(0, nil, thread_count: 0, ssl_cert: "cert.pem", ssl_key: "key.pem", bind: ["http://127.0.0.1:0", "https://127.0.0.1:0"])
    Agoo::Server.handle(:GET, "/scheme", ->(env) { [200, {}, [env["rack.url_scheme"]]] })
    Agoo::Server.start
  RUBY

  def test_it_serves_https_beside_http
    server = own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: { "program.rb" => WITH_TLS, **certificate_files })).start

    assert_equal %w[http https], [get(server, "/scheme").body, tls_get(server.ports.last, "/scheme")]
  end

  def test_it_serves_files_handlers_and_news
    [0, 2].each do |threads|
      files = { "program.rb" => PROGRAM, "root/page.txt" => "page" }
      server = own(Fairlead::Test::LaunchedBy.new("program.rb", nil, threads, files: files)).start

      assert_equal ["hello /hello/ann", "page", "Not Found"], %w[/hello/ann /page.txt /none].map { |path| get(server, path).body }
      socket = web_socket(server, "/upgrade")
      stream = event_stream(server, "/upgrade")
      assert_equal %w[on tick], socket.receive_all(2)
      assert_equal [%w[msg on], %w[msg tick]], Array.new(2) { stream.receive.to_a.values_at(0, 2) }
      socket.drop
      stream.drop
      server.stop
    end
  end

  def test_a_program_ends_the_server_that_runs_beside_it
    server = own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: { "program.rb" => ENDING })).start

    assert_equal "one", get(server, "/one").body
    server.write("end", "")
    server.wait_for_output(/the program goes on/)
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", server.port) }
  end
end
