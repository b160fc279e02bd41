# frozen_string_literal: true

require "test_helper"

class AcmeAccountKeyTest < Minitest::Test
  AccountKey = Fairlead::Acme::AccountKey

  # RFC 7515, appendix A.3.1.
  PUBLIC = { x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0" }.freeze
  PRIVATE = "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"

  def test_a_signature_is_that_of_the_key
    key = AccountKey.load(nil)
    20.times do |index| # numbers of a signature may begin with zeros
      signed = key.sign({ url: "https://ca.example/#{index}" }, "payload")
      header, signature = [signed[:protected], signed[:signature]].map { |part| AccountKey.decode(part) }

      assert_equal({ "url" => "https://ca.example/#{index}", "alg" => "ES256" }, JSON.parse(header))
      assert_equal 64, signature.bytesize
      assert verified?(key, "#{signed[:protected]}.#{signed[:payload]}", signature)
    end
  end

  def test_the_public_half_is_that_of_the_standard
    key = AccountKey.load(pem_of_the_standard)

    assert_equal({ crv: "P-256", kty: "EC", **PUBLIC }, key.to_h)
  end

  # RFC 7638 §3: of these members in this order, without spaces.
  def test_an_answer_has_the_token_and_the_thumbprint
    text = %({"crv":"P-256","kty":"EC","x":"#{PUBLIC[:x]}","y":"#{PUBLIC[:y]}"})
    thumbprint = [OpenSSL::Digest::SHA256.digest(text)].pack("m0").tr("+/", "-_").delete("=")

    assert_equal "token.#{thumbprint}", AccountKey.load(pem_of_the_standard).authorization("token")
  end

  def test_a_key_that_was_kept_is_the_same
    key = AccountKey.load(nil)

    assert_equal key.to_h, AccountKey.load(key.to_pem).to_h
    refute_equal key.to_h, AccountKey.load(nil).to_h
  end

  # RFC 7515, appendix A.1, has this secret and this signature.
  def test_a_shared_secret_signs_too
    secret = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
    signed = AccountKey.sign_shared({ kid: "a" }, "payload", secret)
    expected = OpenSSL::HMAC.digest("SHA256", AccountKey.decode(secret), "#{signed[:protected]}.#{signed[:payload]}")

    assert_equal expected, AccountKey.decode(signed[:signature])
    assert_equal({ "kid" => "a", "alg" => "HS256" }, JSON.parse(AccountKey.decode(signed[:protected])))
  end

  private

  def verified?(key, text, signature)
    numbers = [signature[0, 32], signature[32, 32]].map { |bytes| OpenSSL::ASN1::Integer.new(OpenSSL::BN.new(bytes, 2)) }
    OpenSSL::PKey.read(key.to_pem).verify("SHA256", OpenSSL::ASN1::Sequence.new(numbers).to_der, text)
  end

  # RFC 5915.
  def pem_of_the_standard
    point = "\x04".b + PUBLIC.values.map { |text| AccountKey.decode(text) }.join
    OpenSSL::PKey::EC.new(OpenSSL::ASN1::Sequence.new([
                                                        OpenSSL::ASN1::Integer.new(1), OpenSSL::ASN1::OctetString.new(AccountKey.decode(PRIVATE)),
                                                        OpenSSL::ASN1::ObjectId.new("prime256v1", 0, :EXPLICIT),
                                                        OpenSSL::ASN1::BitString.new(point, 1, :EXPLICIT)
                                                      ]).to_der).private_to_pem
  end
end
