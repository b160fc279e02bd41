# frozen_string_literal: true

require "test_helper"
require "support/restarts"
require "support/staying"

# Clients of all kinds, with publications of all kinds, while all workers are replaced: nobody notices.
class CrowdTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::Restarts
  include Fairlead::Test::Secured

  # Only Linux has the sealed memory files in which keys are sent.
  TLS = Fairlead::Native.portable? ? {} : { tls12: 5, tls13: 5, tls_stream: 4 }
  CLIENTS = { plain: 10, deflated: 6, large: 6, large_deflated: 3, slow: 3, stream: 6, **TLS }.freeze
  FILES = { "version" => "1", "tmp/sockets/.keep" => "" }.freeze
  OPTIONS = %w[-w 2 -t 2 --publish-socket tmp/sockets/fairlead.sock --deflate context].freeze

  def test_no_client_notices_that_workers_are_replaced
    server = serve(Fairlead::Test::Staying::APPLICATION, *OPTIONS, "-b", ssl_address, files: { **FILES, **certificate_files })
    crowd = Fairlead::Test::Staying.new(server, **CLIENTS)
    crowd.begin
    crowd.during do
      replace(server, :USR1, "phased restart", 3)
      replace(server, :USR2, "hot restart", 1)
      change_number(server)
    end
    crowd.finish

    assert_empty crowd.faults
    assert_equal "5", version(server)
  ensure
    crowd&.drop
  end

  private

  def replace(server, signal, kind, times)
    (1..times).each do |time|
      before = server.worker_pids
      server.write("version", File.read(server.path("version")).succ)
      server.signal(signal)
      restarted(server, kind, times: time)
      wait_until("the end of the old workers", seconds: 30) { (server.worker_pids & before).empty? }
    end
  end

  def change_number(server)
    { TTIN: [3], TTOU: [2, 1] }.each do |signal, numbers|
      numbers.each do |number|
        server.signal(signal)
        server.wait_for_workers(number, seconds: 30)
      end
    end
  end
end
