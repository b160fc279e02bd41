# frozen_string_literal: true

require "test_helper"
require "support/notify_socket"
require "support/supervision"

# Messages to systemd under difficult conditions.
class SystemdUnderFaultsTest < Minitest::Test
  include Fairlead::Test::Supervision

  WATCHDOG = 0.6

  # Longest time for loading the slow code, in seconds.
  LONG = 60

  SLOW = "sleep 2 if File.read('version').strip == '2'\n"

  def setup
    @folder = Dir.mktmpdir("fairlead-test-")
    @socket = Fairlead::Test::NotifySocket.new("#{@folder}/notify")
  end

  def teardown
    @socket.close
    FileUtils.rm_rf(@folder)
  end

  SHAPES.each do |name, workers|
    define_method(:"test_the_watchdog_hears_of_the_server_while_new_code_is_loaded_#{name}") do
      environment = { "WATCHDOG_USEC" => (WATCHDOG * 1_000_000).to_i.to_s }
      server = notifying(workers, app: SLOW + VERSIONED, environment: environment, config: "load_timeout #{LONG}\n")
      longest = longest_silence do
        server.write("version", "2")
        server.signal(:USR2)
        wait_for_version(server, "2", seconds: LONG)
        pass_time(WATCHDOG * 2)
      end

      assert_operator longest, :<, WATCHDOG
    end

    define_method(:"test_readiness_that_finds_the_queue_full_is_told_later_#{name}") do
      fill_queue
      notifying(workers)
      pass_time(1)

      wait_until("READY=1") { @socket.events.include?("READY=1") }
    end
  end

  private

  def notifying(workers, environment: {}, **options)
    supervised(workers, environment: { "NOTIFY_SOCKET" => "#{@folder}/notify", **environment }, **options)
  end

  def fill_queue
    sender = Socket.new(:UNIX, :DGRAM)
    address = Addrinfo.unix("#{@folder}/notify", :DGRAM)
    nil while sender.sendmsg_nonblock("STATUS=full", 0, address, exception: false) != :wait_writable
  ensure
    sender.close
  end

  # Longest time without WATCHDOG=1 while the block runs, in seconds.
  def longest_silence
    over = false
    listener = Thread.new do
      since = monotonic
      longest = 0
      until over
        heard = @socket.read.messages.delete("WATCHDOG=1")
        longest = [longest, monotonic - since].max
        since = monotonic if heard
        sleep PAUSE
      end
      longest
    end
    yield
    over = true
    listener.value
  end
end
