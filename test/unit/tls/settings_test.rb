# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

class TlsSettingsTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  Parameters = Fairlead::Tls::Parameters

  def test_paths_stay_those_of_the_folder_of_the_start
    settings = nil
    in_folder("a.pem" => "chain", "a.key" => "key", "t" => "x" * 48, "ca" => "authority") do
      given = { cert: "a.pem", key: "a.key", verify_mode: "peer", ca: "ca" }
      settings = settings(given, certificate: [["a.pem", "a.key", "t"]], tls_ticket_keys: ["t"])
      File.chmod(0o600, "a.key", "t")
      read = settings.read

      assert_equal [["chain", "key", nil], ["chain", "key", "x" * 48]], read[:certificates].map { |parts| parts.map { |part| part&.last } }
      assert_equal ["peer", "authority", nil, false], [read[:verify_mode], read[:ca].last, read[:crl], read[:tls13_only]]
      assert_equal [File.expand_path("a.pem")], read[:certificates].map { |parts| parts.first.first }.uniq
      assert_equal %w[a.pem a.key t ca].map { |path| File.expand_path(path) }.sort, settings.files.sort
      assert_empty settings.warnings
    end
  end

  def test_texts_have_no_files
    place = Fairlead::Tls::Store.add("text")
    settings = settings({ cert: place, key: place })

    assert_empty settings.files
    assert_equal ["the text at #{place}", "text"], settings.read[:certificates].first.first
  end

  def test_a_file_that_is_replaced_changes_the_signature
    in_folder("a.pem" => "chain", "a.key" => "key") do
      settings = settings({ cert: "a.pem", key: "a.key" })
      before = settings.signature
      assert_equal before, settings.signature
      File.write("new", "chain")
      File.rename("new", "a.pem")
      refute_equal before, settings.signature
      File.unlink("a.pem")
      assert_includes settings.signature, Errno::ENOENT
    end
  end

  def test_what_cannot_be_read_is_told
    { { cert: "none", key: "none" } => %r{/none: cannot be read \(ENOENT\)\z},
      {} => /\Athere is no certificate; give cert and key/ }.each do |given, text|
      assert_match(text, assert_raises(Fairlead::Tls::Invalid) { settings(given).read }.message)
    end
  end

  # A wrong path must not fill the memory of a server that reloads.
  def test_a_file_that_is_too_large_is_refused
    in_folder("a.pem" => "chain", "empty" => "", "large" => "x" * ((1 << 20) + 1), "list" => "x" * (1 << 21)) do
      chain = { cert: "a.pem", key: "a.pem", verify_mode: "peer" }
      assert_equal [1 << 21, 0], settings({ **chain, ca: "empty", crl: "list" }).read.values_at(:crl, :ca).map { |_, text| text.bytesize }
      File.write("huge", "") && File.truncate("huge", (128 << 20) + 1)
      { { cert: "large", key: "a.pem" } => 1, { cert: "a.pem", key: "large" } => 1,
        { **chain, ca: "large" } => 1, { **chain, ca: "a.pem", crl: "huge" } => 128 }.each do |given, most|
        text = %r{\A/\S+: has more than #{most} MiB, which is too much for such a file; check its path\z}
        assert_match(text, assert_raises(Fairlead::Tls::Invalid) { settings(given).read }.message)
      end
    end
  end

  def test_a_file_that_is_none_of_a_disk_is_refused
    in_folder("a.pem" => "chain") do
      error = assert_raises(Fairlead::Tls::Invalid) { settings({ cert: "/dev/zero", key: "a.pem" }).read }

      assert_equal "/dev/zero: is no regular file (characterSpecial)", error.message
    end
  end

  # One host's certificate may still be missing, while another one exists.
  def test_without_a_certificate_those_of_acme_are_used_as_far_as_they_are_there
    in_folder do
      orders = %w[a.example b.example].map { |host| Fairlead::Options[:acme].type.parse("#{host}?terms_of_service_agreed=true") }
      configuration = Fairlead::Configuration.from_options(acme: orders, acme_dir: "state")
      settings = Fairlead::Tls::Settings.new(Parameters.new([]), configuration, "localhost")
      before = settings.signature

      assert_empty settings.read[:certificates]
      assert_equal File.expand_path("state/challenges"), settings.read[:acme_challenges]

      store = Fairlead::Acme::Store.new("state")
      store.folder.write(*store.certificate(orders.last), text = pem("b.example"))

      assert_equal([[store.path_of(orders.last), text]] * 2, settings.read[:certificates].first.first(2))
      assert_empty settings.warnings
      refute_equal before, settings.signature
    end
  end

  def test_for_development_one_is_made_unless_a_program_has_not_said_that_it_is_that
    in_folder do |folder|
      with_state_home(folder) do
        assert_equal [], settings_for("production") + settings_for("production", :embedded)

        made = settings_for("development")

        assert_equal ["#{folder}/fairlead/development/localhost.pem"] * 2, made.first(2)
        assert_equal made, settings_for("development", :embedded)
      end
    end
  end

  def test_a_check_keeps_no_certificate_for_development
    in_folder do |folder|
      with_state_home(folder) do
        configuration = Fairlead::Configuration.from_options({ environment: "development" })
        settings = Fairlead::Tls::Settings.new(Parameters.new([]), configuration, "localhost", checking: true)

        assert_match(/BEGIN CERTIFICATE/, settings.read[:certificates].first.first.last)
        assert_nil settings.development
        assert_empty Dir.children(folder)
        assert_raises(Fairlead::Tls::Invalid) { Fairlead::Tls::Settings.new(Parameters.new([]), configuration, "shop.example", checking: true) }
      end
    end
  end

  private

  # Paths of the certificate; none if it is refused.
  def settings_for(environment, kind = :from_options)
    configuration = Fairlead::Configuration.public_send(kind, { environment: environment })
    Fairlead::Tls::Settings.new(Parameters.new([]), configuration, "localhost").read[:certificates].first.compact.map(&:first)
  rescue Fairlead::Tls::Invalid
    []
  end

  def with_state_home(folder)
    before = ENV.to_h.slice("XDG_STATE_HOME", "STATE_DIRECTORY")
    ENV.update("XDG_STATE_HOME" => folder, "STATE_DIRECTORY" => nil)
    yield
  ensure
    ENV.update("XDG_STATE_HOME" => nil, "STATE_DIRECTORY" => nil, **before)
  end

  def settings(parameters, **options)
    configuration = Fairlead::Configuration.embedded({ environment: "production", **options })
    Fairlead::Tls::Settings.new(Parameters.new(parameters.transform_keys(&:to_s).to_a), configuration, "localhost")
  end
end
