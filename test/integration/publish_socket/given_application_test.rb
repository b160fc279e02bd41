# frozen_string_literal: true

require "test_helper"
require "support/given_programs"
require "support/outside_publishers"

# The publish socket of a program that hands over its application: its supervisor is a thread of the program.
class PublishSocketGivenApplicationTest < Minitest::Test
  include Fairlead::Test::OutsidePublishers

  PROGRAM = <<~RUBY.freeze
    #{Fairlead::Test::OutsidePublishers::HEARING.sub("run ", "app = ")}
    Object.new.extend(Fairlead::Handler).run(app, Host: "127.0.0.1", Port: 0)
  RUBY

  { "without_workers" => "0", "with_workers" => "2" }.each do |name, workers|
    define_method(:"test_each_process_that_serves_hears_each_message_also_after_restarts_#{name}") do
      server = given(workers)
      publisher, log = publisher(server)
      results = publishing(publisher) do
        assert_restarts(server)
        assert_restarts(server, "3", signal: :USR1)
      end
      wait_for_hearing(server, results.size - 1, processes: [workers.to_i, 1].max)

      assert_equal [true], results.uniq
      assert_equal (0...results.size).map(&:to_s), heard(server).values.flatten.uniq.sort_by(&:to_i)
      heard(server).each_value { |texts| assert_equal texts.uniq, texts }
      assert_empty log.string
      assert_ends(server)
      refute_path_exists server.path(SOCKET)
    end
  end

  # Without workers, the program itself serves, and its supervisor is a native thread.
  def test_a_program_that_keeps_ruby_busy_takes_messages
    server = given("0", "Fairlead.on(:after_booted) { Thread.new { loop { 1 + 1 } } }")
    publisher, = publisher(server)
    20.times { |number| assert publisher.publish("news", number.to_s) }

    wait_for_hearing(server, 19)
    assert_equal [server.pid.to_s], heard(server).keys
  end

  private

  def given(workers, code = "")
    files = { "version" => "1", "config/fairlead.rb" => QUICK, **CABLE, "program.rb" => "require \"fairlead\"\n#{code}\n#{PROGRAM}" }
    own(Fairlead::Test::LaunchedBy.new("program.rb", nil, files: files, environment: { "WEB_CONCURRENCY" => workers })).start
  end
end
