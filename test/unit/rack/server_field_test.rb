# frozen_string_literal: true

require "test_helper"

class ServerFieldTest < Minitest::Test
  def test_a_response_that_names_no_server_gets_the_name
    assert_equal [404, { "a" => "b", "server" => "shop" }, ["body"]], call([404, { "a" => "b" }, ["body"]])
  end

  def test_what_the_application_says_stays
    assert_equal({ "Server" => "own" }, call([200, { "Server" => "own" }, []])[1])
  end

  def test_fields_that_cannot_be_changed_are_copied
    fields = { "a" => "b" }.freeze

    assert_equal({ "a" => "b", "server" => "shop" }, call([200, fields, []])[1])
    assert_equal({ "a" => "b" }, fields)
  end

  private

  def call(response) = Fairlead::ServerField.new(->(_) { response }, "shop").call({})
end
