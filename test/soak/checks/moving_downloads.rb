# frozen_string_literal: true

# Slow clients download while their workers are replaced, and then also killed: a download is whole, or, after a kill, cut off.
# No client gets a byte twice, a wrong one, or none in between.
require_relative "../check"
require_relative "../../support/restarts"
require_relative "../../support/servers"
require "socket"

TIMES = Integer(ENV.fetch("FAIRLEAD_SOAK_RESTARTS", "10"), 10)
BYTES = 12_000_000
CLIENTS = 12

# A server, its clients, and the ends of their downloads.
class Downloads
  include Fairlead::Test::Waiting
  include Fairlead::Test::Restarts

  # "/large" is a file of the public folder, "/named" one that the application names, "/spooled" a String.
  APP = <<~RUBY
    BODY = File.binread("files/large")
    run lambda { |env|
      [200, env["PATH_INFO"] == "/named" ? { "x-sendfile" => File.expand_path("files/large") } : {}, [BODY]]
    }
  RUBY

  attr_reader :ends

  def initialize(random)
    @random = random
    @content = random.bytes(BYTES)
    @server = Fairlead::Test::ServerProcess.new(APP, "-w", 2, "-t", 4, "--public", "files", "--sendfile-root", "files",
                                                files: { "files/large" => @content }).start
    @ends = Hash.new(0)
    @lock = Mutex.new
    @clients = Array.new(CLIENTS) { |number| Thread.new { download(%w[/large /named /spooled][number % 3]) until @is_over } }
  end

  # Restarts the server, and kills a worker meanwhile.
  def restart(signal, kill: false)
    done = restarts
    @server.signal(signal)
    if kill
      sleep @random.rand
      Process.kill(:KILL, @server.worker_pids.sample(random: @random))
    end
    wait_until("the end of the restart", seconds: 60) { restarts > done }
  end

  def finish
    @is_over = true
    @clients.each(&:join)
    @server.stop(seconds: 60)
  ensure
    @server.destroy
  end

  private

  def restarts = @server.stdout.scan(/restart: done|keep the old code/).size

  def download(path)
    received = +"".b
    TCPSocket.open("127.0.0.1", @server.port) do |socket|
      socket.write("GET #{path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      while (piece = socket.read(300_000))
        received << piece
        sleep 0.03
      end
    end
    note(received)
  rescue SystemCallError
    note(received)
  end

  def note(received)
    body = received.split("\r\n\r\n", 2)[1].to_s
    how = :wrong
    how = body.size == BYTES ? :whole : :cut if @content.start_with?(body)
    @lock.synchronize { @ends[how] += 1 }
  end
end

Fairlead::Soak::Check.run("moving_downloads") do |check|
  seed = Integer(ENV.fetch("FAIRLEAD_SOAK_SEED") { Random.new_seed % 1_000_000 })
  { "restarts" => false, "restarts with kills" => true }.each do |name, kill|
    downloads = Downloads.new(Random.new(seed))
    TIMES.times { |time| downloads.restart(time.even? ? :USR1 : :USR2, kill: kill) }
    downloads.finish
    check.show("#{TIMES} #{name} (seed #{seed}): whole downloads", downloads.ends[:whole])
    kill ? check.show("#{name}: cut off", downloads.ends[:cut]) : check.at_most("#{name}: cut off", downloads.ends[:cut], 0)
    check.at_most("#{name}: wrong", downloads.ends[:wrong], 0)
  end
end
