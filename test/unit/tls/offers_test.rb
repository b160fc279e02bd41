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

  # As a worker has it.
  def test_one_that_follows_tells_of_each_attempt_until_it_succeeds
    in_folder(files) do
      leader, offers = Array.new(2) { offers_of("ssl://a:1?#{QUERY}") }
      write(files(second))
      assert leader.reload
      File.write("cert.pem", "broken")
      said = Thread::Queue.new
      offers.follow(*named(leader)) { |reason| said << reason }

      assert_match(/no certificate/, said.pop)
      write(files(second))
      assert_nil said.pop
      assert_equal named(leader), named(offers)
      offers.follow(*named(leader)) { |reason| said << reason }
      assert_nil said.pop(true)
    ensure
      offers&.stop
    end
  end

  def test_another_process_reads_the_files_that_one_names
    in_folder(files) do
      offers = offers_of("ssl://a:1?#{QUERY}")
      log = Fairlead::EventLog.new(logger: @output)
      others = Fairlead::Tls::Offers.unread(offers.description, Fairlead::Configuration.embedded(watch_certificates: 0), log)

      assert_nil others.for("ssl://a:1").fingerprint
      assert others.reload
      assert_equal named(offers), named(others)
    end
  end

  def test_only_a_supervisor_keeps_what_it_has_read
    in_folder(files) do
      assert_empty offers_of("ssl://a:1?#{QUERY}").kept
      offers = offers_of("ssl://a:1?#{QUERY}", workers: 1)
      before = offers.kept
      File.write("cert.pem", "broken")
      refute offers.reload
      assert_equal before, offers.kept
      assert_includes before.values.first[:certificates].first.first.last, "BEGIN CERTIFICATE"
      offers.forget
      assert_empty offers.kept
    end
  end

  def test_what_is_handed_over_takes_the_place_of_the_files
    in_folder(files) do
      offers = offers_of("ssl://a:1?#{QUERY}", workers: 1)
      File.write("cert.pem", "broken")
      others = offers_of("ssl://a:1?#{QUERY}", workers: 1, kept: handed_over(Marshal.dump(offers.kept)))

      assert_equal named(offers), named(others)
      ["", Marshal.dump(offers.kept)[0..-9]].each { |text| assert_empty handed_over(text) }
      refute_equal named(offers), named(offers_of("ssl://a:1?#{QUERY}", workers: 1, kept: {}))
      assert_match(/no certificate for ssl:.*cert\.pem: there is no certificate/, @output.string)
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

  def offers_of(*addresses, watch: 0, workers: 0, kept: nil)
    configuration = Fairlead::Configuration.from_options(bind: addresses, watch_certificates: watch, workers: workers)
    Fairlead::Tls::Offers.new(configuration, Fairlead::EventLog.new(logger: @output = StringIO.new), kept: kept)
  end

  def handed_over(text)
    reader, writer = IO.pipe
    writer.binmode.write(text)
    writer.close
    Fairlead::Tls::Offers.handed_over(reader)
  end
end
