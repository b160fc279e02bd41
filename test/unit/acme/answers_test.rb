# frozen_string_literal: true

require "test_helper"

class AcmeAnswersTest < Minitest::Test
  include Fairlead::Test::Folders

  Answers = Fairlead::Acme::Answers

  def test_an_answer_to_a_request_is_a_file_with_the_name_of_the_token
    with_answers do |answers|
      answers.give("http-01", host: "a.example", token: "tok-en_1", authorization: "tok-en_1.thumbprint")

      assert_equal "tok-en_1.thumbprint", File.read("challenges/http-01/tok-en_1")
    end
  end

  # RFC 8737 §3: the name, and a critical extension with the digest.
  def test_an_answer_in_a_handshake_is_a_certificate_that_names_the_host_and_has_the_digest
    with_answers do |answers|
      answers.give("tls-alpn-01", host: "a.example", token: "token", authorization: "token.thumbprint")
      text = File.read("challenges/tls-alpn-01/a.example.pem")
      certificate = OpenSSL::X509::Certificate.new(text)
      extension = certificate.extensions.find { |one| one.oid == Answers::ACME_IDENTIFIER }

      assert certificate.check_private_key(OpenSSL::PKey.read(text))
      assert_equal "DNS:a.example", certificate.extensions.find { |one| one.oid == "subjectAltName" }.value
      assert_predicate extension, :critical?
      assert_equal OpenSSL::Digest.digest("SHA256", "token.thumbprint"), OpenSSL::ASN1.decode(extension.value_der).value
    end
  end

  # Files of another server, or of another order.
  def test_answers_of_others_stay
    with_answers do |answers|
      Fairlead::StateFolder.new(".").write("challenges", "http-01", "other", "x")
      answers.give("http-01", host: "a.example", token: "token", authorization: "x")
      answers.take_away

      assert_equal ["challenges/http-01/other"], Dir.glob("challenges/*/*")
    end
  end

  def test_all_answers_are_taken_away
    with_answers do |answers|
      answers.give("http-01", host: "a.example", token: "token", authorization: "x")
      answers.give("tls-alpn-01", host: "a.example", token: "token", authorization: "x")
      answers.take_away

      assert_empty Dir.glob("challenges/*/*")
    end
  end

  # The token becomes the name of a file.
  def test_an_authority_cannot_choose_where_to_write
    with_answers do |answers|
      ["../account.pem", "", "a/b", "a\nb", ".", "x" * 129].each do |token|
        assert_raises(Fairlead::Acme::Problem) { answers.give("http-01", host: "a.example", token: token, authorization: "x") }
      end
      assert_raises(Fairlead::Acme::Problem) { answers.give("tls-alpn-01", host: "../a", token: "token", authorization: "x") }
    end
  end

  private

  def with_answers
    in_folder { |folder| yield Answers.new(Fairlead::Acme::Store.new(folder)) }
  end
end
