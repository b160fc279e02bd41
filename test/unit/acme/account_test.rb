# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

class AcmeAccountTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  Account = Fairlead::Acme::Account
  ORDER = { contact: "admin@a.example" }.freeze
  URL = "https://ca.example/account/1"

  Log = Struct.new(:lines) do
    def acme_state_unusable(text) = lines << text
  end

  def test_there_is_none_at_first
    with_account { |account, _, lines| assert_equal [nil, []], [account.to_h, lines] }
  end

  def test_what_is_saved_is_there_again
    with_account do |account, store|
      account.save(URL, key.private_to_der.bytes)
      kept = account.to_h

      assert_equal [URL, ["mailto:admin@a.example"]], kept.values_at(:url, :contact)
      assert_equal "prime256v1", OpenSSL::PKey.read(kept[:key].pack("C*")).group.curve_name
      assert_match(/\A-----BEGIN PRIVATE KEY/, store.folder.read(*store.account_key(order("a.example"))))
      account.forget

      assert_equal [kept[:key], nil], account.to_h.values_at(:key, :url)
    end
  end

  def test_what_cannot_be_used_counts_as_missing_and_is_kept_aside
    { "nothing" => "", "no key" => "x", "bytes" => "\xff\x00".b, "RSA" => OpenSSL::PKey::RSA.generate(2048).to_pem,
      "another curve" => OpenSSL::PKey::EC.generate("secp384r1").private_to_pem, "only the public half" => key.public_to_pem,
      "a password" => key.private_to_pem(OpenSSL::Cipher.new("aes-128-cbc"), "secret") }.each do |name, text|
      with_account do |account, store, lines|
        path = store.folder.write(*store.account_key(order("a.example")), text)

        assert_nil account.to_h, name
        assert_equal 1, lines.size, name
        assert_includes lines.first, path
        account.save(URL, key.private_to_der.bytes)

        assert_equal text.b, File.binread(path + Account::UNUSABLE), name
        assert_equal URL, account.to_h[:url]
      end
    end
  end

  # The authority finds the account by its key.
  def test_an_address_that_cannot_be_used_is_none
    ["", "{", "[1]", "null", "{\"url\": 7}", "{\"url\": \"ftp://x\"}", "\xff".b].each do |text|
      with_account do |account, store|
        account.save(URL, key.private_to_der.bytes)
        store.folder.write(*store.account(order("a.example")), text)

        assert_equal [true, nil], [!account.to_h[:key].nil?, account.to_h[:url]], text
      end
    end
  end

  private

  def key = OpenSSL::PKey::EC.generate("prime256v1")

  def with_account
    in_folder do |folder|
      store = Fairlead::Acme::Store.new(folder)
      yield Account.new(order("a.example", **ORDER), store, log: Log.new(lines = [])), store, lines
    end
  end
end
