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

  def test_changes_are_taken_when_the_files_rest_and_refused_ones_are_not_tried_again
    in_folder(files) do
      offers = offers_of("ssl://a:1?#{QUERY}", watch: 0.01)
      looks = -> { wait_until("a look that reloads") { offers.look } }
      File.write("cert.pem", "broken")
      looks.call
      20.times { offers.look || sleep(0.001) }

      assert_equal 1, @output.string.scan("not reloaded").size
      write(files(Authority.usual.server("localhost", number: 1)))
      looks.call
      assert_equal 1, @output.string.scan("certificates reloaded for ssl://a:1").size
    end
  end

  def test_without_an_interval_or_files_it_never_looks
    in_folder(files) do
      assert_nil offers_of("ssl://a:1?#{QUERY}", watch: 0).pause
      assert_nil offers_of("tcp://a:1").pause
      assert_in_delta 60, offers_of("ssl://a:1?#{QUERY}", watch: 60).pause, 5
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

  def write(files) = files.each { |path, text| File.write(path, text) }

  def offers_of(*addresses, watch: 0)
    configuration = Fairlead::Configuration.embedded(bind: addresses, watch_certificates: watch)
    Fairlead::Tls::Offers.new(configuration, Fairlead::EventLog.new(logger: @output = StringIO.new))
  end
end
