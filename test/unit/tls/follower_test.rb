# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/certificates"

class TlsFollowerTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting

  Authority = Fairlead::Test::Authority

  def test_an_offer_becomes_what_another_process_has_read_and_no_file_is_needed
    in_folder(files) do
      leader, follower, said = pair
      renew(leader)
      FileUtils.rm(%w[cert.pem key.pem])
      follower.take(*news_of(leader))

      assert_equal [leader.key, nil], said.pop
      assert_equal leader.fingerprint, @offer.fingerprint
    end
  end

  def test_what_is_offered_already_is_done
    in_folder(files) do
      leader, follower, said = pair
      renew(leader, 0)
      news = news_of(leader)
      follower.take(*news)

      assert_equal [leader.key, nil], said.pop(true)
      assert_predicate news.last, :closed?
    end
  end

  def test_another_configuration_keeps_its_own
    in_folder(files) do
      leader, follower, said = pair("&backlog=5")
      renew(leader)
      before = @offer.fingerprint
      follower.take(*news_of(leader))

      assert_equal [leader.key, nil], said.pop(true)
      assert_equal before, @offer.fingerprint
    end
  end

  def test_a_failure_is_told_of_and_the_next_news_are_taken
    in_folder(files) do
      leader, follower, said = pair
      renew(leader)
      file = Fairlead::Tls::HandedOver.write({ certificates: [] })
      follower.take(leader.key, leader.fingerprint, file)

      refute_nil said.pop.last
      follower.take(*news_of(leader))
      wait_until("the new one") { @offer.fingerprint == leader.fingerprint }
      wait_until("a reply") { said.pop.last.nil? }
    end
  end

  def test_several_processes_read_the_same_file
    file = Fairlead::Tls::HandedOver.write({ certificates: ["x" * 100_000] })
    2.times { assert_equal 100_000, Fairlead::Tls::HandedOver.read(file.dup)[:certificates].first.size }
    # Sealed, or open for reading only.
    assert_raises(Errno::EPERM, Errno::EINVAL) { IO.for_fd(file.fileno, "r+", autoclose: false).syswrite("y") }
    assert_nil Fairlead::Tls::HandedOver.read(StringIO.new("").then { IO.for_fd(Fairlead::Native.memory_file("test", "no settings")) })
  end

  private

  QUERY = "cert=cert.pem&key=key.pem"
  private_constant :QUERY

  def files(number = 0)
    pair = Authority.usual.server("localhost", number: number)
    { "cert.pem" => pair.pem, "key.pem" => pair.key_pem }
  end

  # An Offer that reads files, a Follower, and the queue of the follower's replies.
  def pair(more = "")
    offers = [QUERY, "#{QUERY}#{more}"].map { |query| offers_of("ssl://a:1?#{query}") }
    @offer = offers.last.for("ssl://a:1")
    said = Thread::Queue.new
    [offers.first.for("ssl://a:1"), Fairlead::Tls::Follower.new(offers.last) { |*answer| said << answer }, said]
  end

  def renew(offer, number = 1)
    files(number).each { |path, text| File.write(path, text) }
    offer.reload
  end

  def news_of(offer) = [offer.key, offer.fingerprint, Fairlead::Tls::HandedOver.write(offer.take_read)]

  def offers_of(address)
    configuration = Fairlead::Configuration.from_options(bind: address, watch_certificates: 0)
    Fairlead::Tls::Offers.new(configuration, Fairlead::EventLog.new(logger: StringIO.new), keep: true)
  end
end
