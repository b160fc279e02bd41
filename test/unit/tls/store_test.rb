# frozen_string_literal: true

require "test_helper"

class TlsStoreTest < Minitest::Test
  Store = Fairlead::Tls::Store

  def test_a_text_has_one_place
    place = Store.add("a text of #{object_id}")

    assert_match(/\Astore:\d+\z/, place)
    assert_equal place, Store.add("a text of #{object_id}")
    refute_equal place, Store.add("another text of #{object_id}")
    assert_equal "a text of #{object_id}", Store[place]
  end

  def test_objects_of_openssl_are_texts_too
    assert_equal "in PEM", Store[Store.add(Struct.new(:to_pem).new("in PEM"))]
  end

  def test_other_names_are_no_places
    assert_nil Store["a.pem"]
    refute Store.place?("store:x")
    assert_raises(Fairlead::Tls::Invalid) { Store["store:99999"] }
  end
end
