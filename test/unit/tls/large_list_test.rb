# frozen_string_literal: true

require "test_helper"
require "support/certificates"

# A revocation list with very many entries.
class TlsLargeListTest < Minitest::Test
  include Fairlead::Test::Folders

  Authority = Fairlead::Test::Authority
  ENTRIES = 200_000

  # Parsing would block all other threads if it kept the GVL.
  def test_other_threads_run_while_it_is_read
    with_list do |tls, settings|
      seen = []
      other = Thread.new { loop { sleep(0.001) && seen << now } }
      ran = Array.new(5) do
        began = now
        used = processor_time { tls.replace(settings) }
        seen.dup.count { |time| time.between?(began + 0.002, began + used) }
      end
      other.kill.join

      assert_predicate ran.max, :positive?
    end
  end

  private

  def with_list
    pair = Authority.usual.server("localhost")
    list = Authority.usual.revoke_range(ENTRIES)
    in_folder("cert.pem" => pair.pem, "key.pem" => pair.key_pem, "ca.pem" => Authority.usual.pem, "ca.crl" => list) do
      settings = settings_of("ssl://a:1?cert=cert.pem&key=key.pem&ca=ca.pem&crl=ca.crl&verify_mode=peer").read
      yield Fairlead::Native::Tls.new(settings), settings
    end
  end

  def processor_time
    before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    yield
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) - before
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def settings_of(address)
    binding = Fairlead::Binding.parse(address)
    Fairlead::Tls::Settings.new(binding.tls, Fairlead::Configuration.embedded(bind: [address]), "a")
  end
end
