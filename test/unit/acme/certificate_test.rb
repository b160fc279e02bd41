# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

class AcmeCertificateTest < Minitest::Test
  include Fairlead::Test::AcmeOrders

  Certificate = Fairlead::Acme::Certificate
  DAY = 24 * 3600

  # Between 30 and 33 days before the end of 90, depending on the certificate.
  def test_it_is_renewed_when_a_third_of_its_life_is_left_or_a_little_earlier
    now = Time.at(1_800_000_000)
    times = (1..50).map { |serial| Certificate.parse(pem("a.example", begins: now, ends: now + (90 * DAY), serial: serial * 20)).renew_at }

    assert_operator times.min, :>=, now + (57 * DAY)
    assert_operator times.max, :<=, now + (60 * DAY)
    assert_operator times.uniq.size, :>, 40
  end

  def test_the_time_stays_the_same_for_the_same_certificate
    text = pem("a.example")

    assert_equal Certificate.parse(text).renew_at, Certificate.parse(text).renew_at
  end

  def test_it_is_for_an_order_with_the_same_hosts_in_any_order
    certificate = Certificate.parse(pem("a.example", "b.example"))

    assert certificate.for?(order("b.example", "a.example"))
    refute certificate.for?(order("a.example"))
    refute certificate.for?(order("a.example", "b.example", "c.example"))
  end

  def test_what_is_no_certificate_is_none
    assert_nil Certificate.parse(nil)
    assert_nil Certificate.parse("nothing of the kind")
  end

  # The example of RFC 9773 §4.1: a serial number with a leading bit has a zero before it.
  def test_it_has_a_name_for_its_authority
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 0x8765_4321
    certificate.not_before = certificate.not_after = Time.now
    certificate.public_key = key
    keys = "698832".ljust(40, "0")
    der = OpenSSL::ASN1::Sequence.new([OpenSSL::ASN1::OctetString.new([keys].pack("H*"), 0, :IMPLICIT)]).to_der
    certificate.add_extension(OpenSSL::X509::Extension.new("authorityKeyIdentifier", der))
    named = Certificate.parse(certificate.sign(key, "SHA256").to_pem)

    assert_equal({ authority: [[keys].pack("H*")].pack("m0").delete("="), serial: "AIdlQyE" }, named.identifier)
    assert_nil Certificate.parse(pem("a.example")).identifier
  end

  def test_it_knows_its_key_and_its_end
    text = pem("a.example", begins: Time.now - 20, ends: Time.now - 10)
    certificate = Certificate.parse(text)

    assert certificate.belongs_to?(OpenSSL::PKey.read(text))
    refute certificate.belongs_to?(OpenSSL::PKey.read(pem("a.example")))
    assert_predicate certificate, :expired?
    refute certificate.expired?(Time.now - 15)
  end
end
