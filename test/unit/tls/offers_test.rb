# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/certificates"

class TlsOffersTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting

  Authority = Fairlead::Test::Authority

  def test_each_address_has_one_and_others_have_none
    offers = nil
    in_folder(files) { offers = offers_of("ssl://a:1?#{QUERY}", "ssl://a:1?#{QUERY}&backlog=5", "ssl://b:1?#{QUERY}", "tcp://a:2") }

    assert_predicate offers, :any?
    assert_same offers.for("ssl://a:1?#{QUERY}&backlog=5"), offers.for("ssl://a:1?#{QUERY}&backlog=5")
    refute_same offers.for("ssl://a:1?#{QUERY}&backlog=5"), offers.for("ssl://a:1?#{QUERY}")
    assert_same offers.for("ssl://a:1"), offers.for("ssl://a:1?cert=other&key=other")
    refute_same offers.for("ssl://a:1"), offers.for("ssl://b:1")
    assert_nil offers.for("tcp://a:1")
    refute_predicate offers_of("tcp://a:1"), :any?
  end

  def test_one_that_is_not_configured_is_made_of_its_own_address
    in_folder(files) do
      offers = offers_of("tcp://a:1")

      assert_same offers.for("ssl://c:1?#{QUERY}"), offers.for("ssl://c:1")
      assert_raises(Fairlead::BindError) { offers.for("ssl://d:1?cert=x&key=y") }
    end
  end

  def test_what_was_said_is_not_said_again
    in_folder(files, mode: 0o644) do
      offers = offers_of("ssl://a:1?#{QUERY}")
      2.times { offers.warn }

      assert_equal 1, @output.string.scan("everybody on this machine may read").size
    end
  end

  def test_changes_are_taken_and_a_refused_one_is_told_of_once_until_it_is_repaired
    in_folder(files) do
      offers = offers_of("ssl://a:1?#{QUERY}", watch: 0.01)
      offers.start
      File.write("cert.pem", "broken")
      wait_until("a refusal") { @output.string.include?("not reloaded") }
      2.times { refute offers.reload }
      write(files(second))
      wait_until("the new one") { @output.string.include?("certificates reloaded for ssl://a:1") }

      assert_equal 1, @output.string.scan("ssl://a:1, the former ones stay").size - 2
    ensure
      offers&.stop
    end
  end

  def test_a_thread_that_was_killed_is_replaced
    in_folder(files) do
      offers = offers_of("ssl://a:1?#{QUERY}", watch: 0.01)
      offers.start
      certificate_threads.each { |thread| thread.kill.join }
      offers.tend
      write(files(second))
      wait_until("the new one") { @output.string.include?("certificates reloaded for ssl://a:1") }
    ensure
      offers&.stop
    end
    assert_empty certificate_threads
  end

  def test_what_was_read_can_be_taken_once
    in_folder(files) do
      assert_empty offers_of("ssl://a:1?#{QUERY}").take_read
      offers = offers_of("ssl://a:1?#{QUERY}", keep: true)
      (_, settings), = offers.take_read

      assert_includes settings[:certificates].first.first.last, "BEGIN CERTIFICATE"
      assert_empty offers.take_read
      File.write("cert.pem", "broken")
      refute offers.reload
      assert_empty offers.take_read
    end
  end

  def test_what_another_process_has_read_takes_the_place_of_the_files
    in_folder(files) do
      offers = offers_of("ssl://a:1?#{QUERY}", keep: true)
      kept = offers.take_read.to_h.transform_keys(&:key)
      File.write("cert.pem", "broken")

      assert_equal named(offers), named(offers_of("ssl://a:1?#{QUERY}", kept: kept))
      refute_equal named(offers), named(offers_of("ssl://a:1?#{QUERY}", kept: {}))
      assert_match(/no certificate for ssl:.*cert\.pem: it contains no certificate/, @output.string)
    end
  end

  def test_a_key_stands_for_the_address_and_its_files
    in_folder({ **files, "other.pem" => files["cert.pem"] }) do
      keys = [[["cert.pem", "key.pem"]], [["other.pem", "key.pem"]]].map { |pairs| offers_of("ssl://a:1", certificate: pairs).for("ssl://a:1").key }

      refute_equal(*keys)
      assert_equal keys.first, offers_of("ssl://a:1", certificate: [["cert.pem", "key.pem"]]).for("ssl://a:1").key
    end
  end

  private

  QUERY = "cert=cert.pem&key=key.pem"
  private_constant :QUERY

  def files(pair = Authority.usual.server("localhost")) = { "cert.pem" => pair.pem, "key.pem" => pair.key_pem }

  def in_folder(files, mode: 0o600)
    super(files) do
      File.chmod(mode, "key.pem")
      yield
    end
  end

  def second = Authority.usual.server("localhost", number: 1)

  def certificate_threads = Thread.list.select { |thread| thread.name == "fairlead certificates" }

  def named(offers) = offers.for("ssl://a:1").then { |offer| [offer.key, offer.location, offer.fingerprint] }

  def write(files) = files.each { |path, text| File.write(path, text) }

  def offers_of(*addresses, watch: 0, certificate: [], **how)
    configuration = Fairlead::Configuration.from_options(bind: addresses, watch_certificates: watch, certificate: certificate)
    Fairlead::Tls::Offers.new(configuration, Fairlead::EventLog.new(logger: @output = StringIO.new), **how)
  end
end
