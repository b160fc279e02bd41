# frozen_string_literal: true

require "test_helper"

class TlsUpkeepTest < Minitest::Test
  # Looks at its files take 2 ms of CPU time.
  Offer = Struct.new(:looks) do
    def files? = true
    def tried = :unchanged

    def signature
      enough = cpu_time + 0.002
      nil until cpu_time > enough
      looks << Fairlead::Clock.now
      :unchanged
    end

    def cpu_time = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  end

  def test_looks_take_a_hundredth_of_the_time
    offer = Offer.new(Thread::Queue.new)
    upkeep = Fairlead::Tls::Upkeep.new(offer)
    upkeep.start(0.001) { nil }
    first, _, third = Array.new(3) { offer.looks.pop }

    assert_operator third - first, :>=, 0.4
  ensure
    upkeep.stop
  end
end
