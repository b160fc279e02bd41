# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "support/acme_orders"

class AcmeShownTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  # Texts that make the start of a server fail if it takes them for a certificate.
  DAMAGED = {
    "empty" => ->(_) { "" },
    "cut in its first certificate" => ->(pem) { pem[0, pem.size - 100] },
    "cut in the second one" => ->(pem) { pem + pem[pem.index("-----BEGIN CERTIFICATE")..][0, 200] },
    "only the key" => ->(pem) { pem[0, pem.index("-----BEGIN CERTIFICATE")] },
    "only the certificate" => ->(pem) { pem[pem.index("-----BEGIN CERTIFICATE")..] },
    "DER" => ->(pem) { OpenSSL::X509::Certificate.new(pem).to_der },
    "a key and DER" => ->(pem) { OpenSSL::PKey.read(pem).private_to_pem.b + OpenSSL::X509::Certificate.new(pem).to_der },
    "another key" => ->(pem) { OpenSSL::PKey::EC.generate("prime256v1").private_to_pem + pem[pem.index("-----BEGIN CERTIFICATE")..] },
    "bytes" => ->(_) { "\xff\x00\e[31m".b },
    "endless" => ->(pem) { pem + ("x" * 300_000) }
  }.freeze

  def test_what_the_engine_cannot_load_counts_as_missing
    DAMAGED.each do |name, damage|
      with_shown do |shown, path|
        File.binwrite(path, damage.call(pem("a.example")))

        assert_nil shown.read, name
        assert_match(/\Aacme: .*#{Regexp.escape(path)}.*; it counts as missing: another one is ordered\z/, shown.warning, name)
      end
    end
  end

  def test_the_last_usable_text_stays
    DAMAGED.each do |name, damage|
      with_shown do |shown, path|
        File.write(path, good = pem("a.example"))

        assert_equal [[path, good], nil], [shown.read, shown.warning]
        File.binwrite(path, damage.call(good))

        assert_equal [path, good], shown.read, name
        assert_match(/the last usable certificate stays in use, and is written again/, shown.warning, name)
      end
    end
  end

  def test_a_file_that_disappears_leaves_its_certificate_in_use
    with_shown do |shown, path|
      assert_equal [nil, nil], [shown.read, shown.warning]
      File.write(path, good = pem("a.example"))
      shown.read
      File.unlink(path)

      assert_equal [path, good], shown.read
      assert_match(/has disappeared; the last usable/, shown.warning)
      File.write(path, renewed = pem("a.example"))

      assert_equal [[path, renewed], nil], [shown.read, shown.warning]
    end
  end

  def test_what_is_no_file_counts_as_missing
    with_shown do |shown, path|
      Dir.mkdir(path)

      assert_nil shown.read
      assert_match(/cannot be read \(Is a directory\)/, shown.warning)
    end
  end

  private

  def with_shown
    in_folder do |folder|
      store = Fairlead::Acme::Store.new(folder)
      store.folder.delete(*store.certificate(order("a.example")))
      FileUtils.mkdir_p(File.dirname(path = store.path_of(order("a.example"))))
      yield Fairlead::Acme::Shown.new(order("a.example"), store), path
    end
  end
end
