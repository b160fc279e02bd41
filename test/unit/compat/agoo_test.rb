# frozen_string_literal: true

require "test_helper"
require "support/apart"

class AgooTest < Minitest::Test
  include Fairlead::Test::Apart

  # A client that is extended with agoo's methods.
  class Client < Fairlead::Test::FakeClient; end

  def setup
    require "fairlead/compat/agoo"
    Client.prepend(Agoo::Client)
    @published = published = []
    Fairlead.singleton_class.prepend(Module.new { define_method(:publish) { |*arguments| published << arguments } })
  end

  def test_what_is_loaded_says_so
    assert_equal "2.15 (Fairlead #{Fairlead::VERSION})", Agoo::VERSION
    assert_includes Fairlead::Client.ancestors, Agoo::Client
  end

  def test_whatever_is_published_becomes_text
    assert_nil Agoo.publish("time", 7)

    assert_equal [%w[time 7]], @published
  end

  def test_a_subject_is_always_a_pattern
    client = Client.new

    assert_equal "news.>", client.subscribe("news.>")
    assert_equal [[:subscribe, "news.>", { match: :subject, handler: nil }]], client.asked
  end

  def test_subscriptions_that_agoo_does_not_have_are_those_of_fairlead
    client = Client.new
    block = ->(_, _) {}
    client.subscribe("news*", match: :redis)
    client.subscribe("news", &block)

    assert_equal [[:subscribe, "news*", { match: :redis }], [:subscribe, "news", {}, block]], client.asked
  end

  def test_an_event_is_a_msg
    client = Client.new(:sse)
    client.write("hi")
    client.write("other", event: "mine", id: 3)
    client.subscribe("news")
    client.asked.last[2].fetch(:handler).call("news", "later")

    assert_equal [["hi", { event: "msg" }], ["other", { event: "mine", id: 3 }], ["later", { event: "msg" }]], client.sent
    assert_equal [["hi", {}]], Client.new.tap { |socket| socket.write("hi") }.sent
  end

  def test_all_subscriptions_can_be_given_up_at_once
    client = Client.new
    %w[a b c b].each { |subject| client.subscribe(subject) }
    client.asked.clear
    client.unsubscribe("b")
    client.unsubscribe
    client.unsubscribe

    assert_equal %w[b a c], client.asked.map(&:last)
  end

  def test_the_handler_hears_of_a_write_that_was_dropped
    client = Client.new
    heard = []
    client.handler = Object.new.tap { |handler| handler.define_singleton_method(:on_error) { |*arguments| heard << arguments } }
    client.full = true

    refute client.write("dropped")
    assert_equal [[client, "too many pending messages"]], heard
    client.close

    refute client.write("late")
    assert_equal 1, heard.size
  end

  def test_a_handler_without_that_callback_does_not_matter
    client = Client.new
    client.handler = Object.new
    client.full = true

    refute client.write("dropped")
  end

  def test_the_log_has_kinds
    _, said = capture_subprocess_io do
      Agoo::Log.configure(dir: "", console: true, states: { INFO: true, request: true, WARN: false })
      %i[error warn info debug].each { |level| Agoo::Log.public_send(level, "a #{level}") }
    end

    assert_equal "ERROR: a error\nINFO: a info\n", said
    assert_equal [true, false, true, false], [Agoo::Log.error?, Agoo::Log.warn?, Agoo::Log.info?, Agoo::Log.debug?]
    assert Agoo::Log.state(:request)
  end

  def test_what_is_missing_says_what_to_use_instead
    missing = {
      -> { Agoo::GraphQL } => /graphql/, -> { Agoo.unsubscribe("a") } => /client/, -> { Agoo::Log.configure(dir: "log") } => /--access-log/,
      -> { Agoo::Server.init(1, nil, graphql: "/graphql") } => /gem graphql/, -> { Agoo::Server.domain("a", "b") } => /HTTP_HOST/
    }
    missing.each do |attempt, hint|
      error = assert_raises(NotImplementedError, &attempt)
      assert_match hint, error.message
    end
    assert_raises(NameError) { Agoo::Nonsense }
  end

  def test_beside_the_real_one_it_is_an_error
    Fairlead::Compat.claim(:Unheard, "unheard")
    error = assert_raises(Fairlead::Compat::NameTaken) { Fairlead::Compat.claim(:Minitest, "minitest") }

    assert_match(/the gem minitest is loaded/, error.message)
  end
end
