# frozen_string_literal: true

require "test_helper"

# The news of members for the clients of a process: Fairlead::Cable::Presence::Exchange.
class PresenceExchangeTest < Minitest::Test
  Exchange = Fairlead::Cable::Presence::Exchange

  def test_members_who_come_back_to_a_new_process_are_no_news
    exchange = Exchange.new
    told = []
    tell = ->(*details, **) { told << details.last }
    Fairlead::Cable::Extended::Transients.stub(:deliver, tell) do
      exchange.send(:receive, "join", "process", "s1", "room", "ann", nil, true)
      exchange.send(:receive, "join", "process", "s2", "room", "bob", nil, false)
      exchange.send(:receive, "leave", "process", "s1", "room")
    end

    assert_equal %w[join:bob leave:ann], (told.map { |text| JSON.parse(text).values_at("type", "id").join(":") })
  end
end
