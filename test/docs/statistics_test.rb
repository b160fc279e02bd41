# frozen_string_literal: true

require "test_helper"
require "support/apart"

# The statistics in docs/guides/deployment.md match the existing ones. The table is the engine's; UPDATE_DOCS=1 writes it into the
# document, and any other run compares it.
class StatisticsTest < Minitest::Test
  include Fairlead::Test::Apart

  DOCUMENT = File.join(ROOT, "docs/guides/deployment.md")
  BLOCK = /(?<=<!-- statistics -->\n).*?(?=<!-- end -->)/m
  # Statistics that applications have always got.
  OF_WORKER = %i[
    slot connections clients queued busy_threads threads open_http2_connections requests overtaken queue_time waiting_room_time lock_wait time_slices
    moved_out moved_in handed_off taken_over refused_requests timed_out_requests abandoned_requests refused_connections
    handshakes resumed_handshakes failed_handshakes
    http2_connections http2_requests http2_violations http2_slow http2_reset_floods http2_provoked_reset_floods http2_settings_floods
    http2_ping_floods http2_priority_floods http2_window_floods http2_continuation_floods http2_empty_data_floods
    websockets event_streams immovable messages_received messages_sent
    events pending_message_bytes dropped overflowed channels subscriptions refused_subscriptions published delivered mail_waits mail_lost
    response_memory_bytes response_disk_bytes request_memory_bytes request_disk_bytes limit_connections limit_threads
    limit_response_memory_bytes limit_response_disk_bytes limit_request_memory_bytes limit_request_disk_bytes
    gc_runs gc_milliseconds lost_log_lines lost_log_bytes
  ].freeze

  def test_the_documentation_has_them_all_and_no_others
    text = File.read(DOCUMENT)
    File.write(DOCUMENT, text.sub(BLOCK) { table }) if ENV["UPDATE_DOCS"]

    assert_equal table, File.read(DOCUMENT)[BLOCK]
  end

  def test_each_is_a_sentence
    assert_empty(statistics.values.map(&:last).reject { |help| help.match?(/\A[A-Z].*\.\z/) })
  end

  def test_an_engine_has_those_of_the_table_in_its_order
    service = Fairlead::Service.new(Fairlead::Configuration.from_options(bind: "tcp://127.0.0.1:0"), log: Fairlead::EventLog.new(quiet: true)).open
    engine = Fairlead::Native::Engine.new(->(_) {}, [], service.engine_settings, nil, 0) { nil }

    assert_equal tables[:engines].keys, engine.stats.keys
  ensure
    engine&.stop
    service&.close
  end

  def test_the_room_and_the_workers_have_those_of_the_table
    shared = Fairlead::Native::Shared.new(2, 2, 0)
    shared.beat(1)
    stats = shared.stats

    assert_equal tables[:room].keys, stats[:room].keys
    assert_equal [OF_WORKER], stats[:workers].map(&:keys)
    assert_equal tables[:workers].keys.sort, (OF_WORKER - [:slot]).sort
    assert_equal tables[:workers].select { |_, (kind, _)| kind == :histogram }.keys, stats[:waits].keys
  end

  private

  def tables = Fairlead::Native.statistics

  def statistics = tables.values.inject(:merge)

  def table
    rows = statistics.map do |name, (kind, help)|
      places = tables.select { |_, table| table.key?(name) }.keys.map { |place| "`:#{place}`" }
      "| `#{name}` | #{places.join(", ")} | #{kind} | #{help.delete_suffix(".")} |\n"
    end
    "| name | in | kind | meaning |\n|---|---|---|---|\n#{rows.join}"
  end
end
