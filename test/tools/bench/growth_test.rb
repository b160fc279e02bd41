# frozen_string_literal: true

require "test_helper"
require_relative "../../../bench/harness"
require_relative "../../../bench/harness/cell"
require_relative "../../../bench/harness/options"
require_relative "../../../bench/harness/report"
require_relative "../../../bench/harness/result"
require_relative "../../../bench/harness/plot"

# Scenarios about growth (bench/harness/growth).
class GrowthTest < Minitest::Test
  include Fairlead::Test::Waiting

  # Has the values of a block for each number.
  class Setup
    def initialize(&values)
      @values = values
    end

    def figures(_target, count) = @values.call(count)
  end

  def test_the_exponent_is_the_power_of_n
    { [5.0, 5.0, 5.0] => 0, [1.0, 10.0, 100.0] => 1, [1.0, 100.0, 10_000.0] => 2, [3.0, 3.0 * 10**0.5, 30.0] => 0.5 }.each do |values, power|
      assert_in_delta power, figure(values).exponent, 1e-9
    end
    assert_nil figure([4.0]).exponent
    assert_in_delta 1, figure([0.0, 10.0, 100.0]).exponent, 1e-9, "a value of zero has no logarithm"
  end

  def test_each_further_thing_adds_the_slope_between_the_largest_numbers
    assert_equal [100.0, "ns"], figure([900.0, 10.0, 100.0]).for_each_more
    assert_equal [1.0, "KiB"], figure([0.0, 1.0, 1.0 + 900 / 1024.0], "memory, MiB").for_each_more
    assert_nil figure([4.0]).for_each_more
  end

  def test_a_server_that_fails_at_a_number_keeps_its_smaller_ones
    found = measure { |count| count > 100 ? raise(Bench::Error, "full") : { "request, µs" => count.to_f } }

    assert_equal({ "request, µs" => { 10 => 10.0, 100 => 100.0 } }, found.growth)
    assert_equal({ "n = 1000: full" => 1 }, found.errors)
    assert_nil drive.problem(found)
    assert_match(/n = 10: broken/, drive.problem(measure { raise Bench::Error, "broken" }))
  end

  def test_the_page_and_the_plot_have_each_operation_of_each_server
    result = stored("fairlead" => 2.0, "nginx" => 1.0)
    page = Bench::Report.new(result, []).to_markdown

    assert_includes page, "| request, µs | fairlead | 2 | 20 | 200 | **1.00** | 200 ns |"
    assert_includes page, "| memory, MiB | nginx | 1 | 1 | 1 | 0.00 | 0 KiB |"
    assert_includes page, "n = idle connections"
    plot = result.plots.fetch("growth")
    assert_equal 4, plot.scan("<polyline").size
    assert_match(/request, µs.*memory, MiB/m, plot)
  end

  def test_results_survive_their_file
    Dir.mktmpdir do |folder|
      file = File.join(folder, "results.json")
      stored("fairlead" => 2.0).store(file)

      assert_equal({ 10 => 2.0, 100 => 20.0, 1000 => 200.0 }, Bench::Cell.from_json(JSON.parse(File.read(file))["m"]["cells"].first).measurements
                                                                     .first.growth["request, µs"])
    end
  end

  def test_a_name_means_its_scenario_or_its_group
    assert_operator Bench::Scenario.matching("growth").size, :>, 10
    assert_equal %w[growth-waiting-fair growth-waiting-fifo growth-waiting-room growth-waiting-streams],
                 Bench::Scenario.matching("growth-waiting").map(&:name).sort
    assert_equal %w[h2], Bench::Scenario.matching("h2").map(&:name), "h2-fair is another scenario"
    assert_raises(Bench::Error) { Bench::Scenario.matching("grow") }
  end

  def test_the_cpu_time_of_processes_is_exact_and_has_that_of_ended_children
    skip "there is no /proc" unless Bench::ProcessGroup.readable?

    compute = "clock = Process::CLOCK_PROCESS_CPUTIME_ID; nil while Process.clock_gettime(clock) < 0.2"
    reader, writer = IO.pipe
    program = "$stdout.sync = true; Process.wait(fork { #{compute} }); #{compute}; puts; $stdin.read"
    pid = Process.spawn(RbConfig.ruby, "-e", program, out: writer, in: reader_of_life, pgroup: true)
    reader.gets
    group = Bench::ProcessGroup.new(pid)

    assert_operator group.cpu_seconds, :>=, 0.38
    assert_operator group.wake_ups, :>=, 1
    wait_until("it sleeps") { !group.running? }
  ensure
    @life&.close
    Process.wait(pid)
  end

  # A real client of HTTP/2 against the frames of a scripted server.
  def test_the_client_of_http2_waits_for_all_responses
    server = TCPServer.new("127.0.0.1", 0)
    script = Thread.new do
      socket = server.accept
      socket.write("\x00\x00\x00\x04\x00\x00\x00\x00\x00".b) # SETTINGS
      [1, 3].each { |stream| socket.write([0, 1, 1, 5, stream, 0x88].pack("nCCCNC")) } # HEADERS with END_STREAM: 200
      socket.write([0, 8, 7, 0, 0, 3, 0].pack("nCCCNNN")) # GOAWAY
      socket
    end
    running = Struct.new(:port).new(server.local_address.ip_port)
    client = Bench::Growth::Http2Client.new(Bench::Drive::Target.new(nil, running, nil, nil, "/"), streams: 2)
    client.opened

    assert_equal 2, client.answered
    script.join
    wait_until("the client has read that the server leaves") { !client.open? }
  ensure
    [client, script&.value, server].compact.each(&:close)
  end

  private

  def figure(values, name = "request, µs")
    Bench::Growth::Figure.new(name, [10, 100, 1000].zip(values).to_h.compact)
  end

  def drive(setup = nil) = Bench::Drive::Growth.new(setup, things: "idle connections", counts: [10, 100, 1000])

  def measure(&values) = drive(Setup.new(&values)).measure(nil, 1)

  def stored(servers)
    scenario = Bench::Scenario.new("m", about: "", shapes: [], app: "", drive: drive, metrics: [], plots: %w[growth])
    cells = servers.map do |server, factor|
      found = measure { |count| { "request, µs" => factor * count / 10, "memory, MiB" => 1.0 } }
      Bench::Cell.new(shape: Bench::Shape.parse("1x5"), server: server, version: "1", measurements: [found], failures: [])
    end
    Bench::Result.new(scenario, {}, cells)
  end

  def reader_of_life
    reader, @life = IO.pipe
    reader
  end
end
