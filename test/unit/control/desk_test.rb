# frozen_string_literal: true

require "test_helper"

class DeskTest < Minitest::Test
  # In place of a Supervisor and a Service. A look at the server never ends.
  Server = Struct.new(:entered, :never) do
    def ping = nil
    def status = (entered << true) && never.pop
  end
  Service = Struct.new(:configuration, :log, :listeners)

  # It holds up TERM otherwise.
  def test_the_end_waits_only_so_long_for_a_look_that_hangs
    server = Server.new(Thread::Queue.new, Thread::Queue.new)
    configuration = Fairlead::Configuration.from_options(plugin: ["tmp_restart"])
    log = Fairlead::EventLog.new(output: StringIO.new, errors: StringIO.new)
    desk = Fairlead::Control::Desk.new(server, Service.new(configuration, log, []), environment: {}).open
    server.entered.pop
    ending = Thread.new { desk.close }

    assert ending.join(60), "the end waits"
  ensure
    server.never.close
    ending&.join
  end
end
