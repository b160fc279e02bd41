# frozen_string_literal: true

require "test_helper"
require "support/apart"

class UpgradeTest < Minitest::Test
  include Fairlead::Test::Apart

  # A handler that records its calls.
  class Noting
    attr_reader :noted

    def initialize = @noted = []
    def on_open = noted << [:open, count]
    def on_message(data) = noted << [:message, data]
    def on_ready = noted << :ready
    def on_shutdown = noted << :shutdown
    def on_close = noted << [:close, count]
  end

  # A handler that is passed as a class, with its own method #write.
  class Shouting
    def on_message(data) = write(data)
    def write(data) = super(data.upcase)
  end

  def setup
    require "fairlead/compat/upgrade"
    @deferred = deferred = []
    Fairlead.singleton_class.prepend(Module.new { define_method(:defer) { |&block| deferred << block } })
  end

  def test_it_stands_in_front_of_every_application
    app = Fairlead::AppLoader.wrap(->(_) { [200, {}, []] })

    assert_kind_of Fairlead::Compat::Upgrade, app
  end

  def test_only_a_websocket_can_be_upgraded
    { websocket: true, sse: false, nil => false }.each do |offered, possible|
      env = request(offered) { |inner| inner["upgrade.websocket"] = Noting.new }

      assert_equal possible, env["upgrade.websocket?"], offered
      assert_equal possible, env.key?("rack.upgrade"), offered
    end
  end

  def test_the_status_does_not_matter_and_the_headers_do
    env = { "rack.upgrade?" => :websocket }
    headers = { "set-cookie" => "a=b" }
    app = ->(inner) { (inner["iodine.websocket"] = Noting.new) && [404, headers, ["body"]] }

    assert_equal [200, headers, ["body"]], Fairlead::Compat::Upgrade.new(app).call(env)
  end

  def test_another_answer_is_left_alone
    answer = [404, {}, []]

    assert_same answer, Fairlead::Compat::Upgrade.new(->(_) { answer }).call({ "rack.upgrade?" => :websocket })
  end

  def test_callbacks_come_without_a_client
    chat, handler, client = opened(Noting.new)
    handler.on_message(client, "hi")
    handler.on_drained(client)
    handler.on_shutdown(client)
    handler.on_close(client)

    assert_equal [[:open, 1], [:message, "hi"], :ready, :shutdown, [:close, 0]], chat.noted
  end

  def test_callbacks_may_be_missing
    handler = upgraded(Object.new)
    client = Fairlead::Test::FakeClient.new
    %i[on_open on_drained on_shutdown on_close].each { |name| handler.public_send(name, client) }

    assert_empty client.sent
  end

  def test_the_object_is_the_connection
    chat, _, client = opened(Noting.new)
    client.env = { "PATH_INFO" => "/ann" }
    client.pending = 1

    assert chat.write("hi")
    assert_equal [["hi", {}]], client.sent
    assert_equal client.env, chat.env
    assert_same chat.env, chat.request
    assert_predicate chat, :has_pending?
    assert_predicate chat, :open?
    chat.close

    refute_predicate client, :open?
    refute chat.write("late")
    refute_predicate chat, :has_pending?
  end

  def test_before_it_is_open_it_can_do_nothing
    chat = Noting.new
    upgraded(chat)

    refute chat.write("early")
    assert_equal [nil, nil, nil, false, false], [chat.close, chat.env, chat.conn_id, chat.open?, chat.has_pending?]
    refute(chat.defer { raise })
  end

  def test_a_class_is_instantiated_for_each_connection_and_keeps_its_own_methods
    handlers = Array.new(2) { upgraded(Shouting) }
    clients = handlers.map { |handler| Fairlead::Test::FakeClient.new.tap { |client| handler.on_open(client) } }
    handlers.first.on_message(clients.first, "hi")

    assert_equal [[["HI", {}]], []], clients.map(&:sent)
    assert_equal 2, Shouting.count
  end

  def test_each_reaches_the_others
    chats, _, clients = Array.new(3) { opened(Noting.new) }.transpose
    chats.first.each { |other| other.write("hi") }
    chats.first.each_write("only the last") { |other| other.equal?(chats.last) }
    chats.first.each_write("all")

    assert_equal [[], %w[hi all], ["hi", "only the last", "all"]], texts(clients)
    assert_equal 3, chats.first.count
  end

  def test_the_module_reaches_all
    chats, handlers, clients = Array.new(3) { opened(Noting.new) }.transpose
    handlers.pop.on_close(clients.last)
    Iodine::Websocket.each { |socket| socket.write("hi") }
    Iodine::Websocket.each_write("first") { |socket| socket.equal?(chats.first) }

    assert_equal [%w[hi first], %w[hi], []], texts(clients)
    assert_equal 2, Iodine::Websocket.count
  end

  def test_a_deferred_block_has_the_connection_to_itself
    chat, handler, client = opened(Noting.new)
    seen = []

    assert(chat.defer { |socket| seen << socket })
    assert(Iodine::Websocket.defer(chat.conn_id) { |socket| seen << socket })
    refute(Iodine::Websocket.defer(chat.conn_id + 1) { |socket| seen << socket })
    assert_empty seen
    leave = Thread::Queue.new
    chat.define_singleton_method(:on_message) { |_| leave.pop }
    message = Thread.new { handler.on_message(client, "slow") }
    Fairlead::Test::Waiting.wait_until { leave.num_waiting == 1 }
    blocks = Thread.new { @deferred.each(&:call) }
    Fairlead::Test::Waiting.wait_until { blocks.stop? }

    assert_empty seen
    leave << true
    [message, blocks].each(&:join)

    assert_equal [chat, chat], seen
  end

  def test_a_deferred_block_of_a_closed_connection_is_dropped
    chat, = opened(Noting.new)
    chat.defer { |socket| socket.noted << :deferred }
    chat.close
    @deferred.each(&:call)

    refute_includes chat.noted, :deferred
  end

  def test_every_connection_has_an_id_of_its_own
    ids = Array.new(3) { opened(Noting.new).first.uuid }

    assert_equal 3, ids.uniq.compact.size
  end

  def test_subscriptions_have_an_id
    chat, _, client = opened(Noting.new)
    block = ->(_, _) {}

    assert_equal "news", chat.subscribe(channel: :news)
    assert_equal "n*", chat.subscribe(pattern: "n*", force: :binary, &block)
    assert_equal [[:subscribe, "news", {}], [:subscribe, "n*", { match: :redis, as: :binary }, block]], client.asked
    assert_equal ["n*", nil], [chat.subscription?(pattern: "n*"), chat.subscribed?(channel: "other")]
    client.asked.clear
    chat.unsubscribe("n*")

    assert_equal [[:unsubscribe, "n*"]], client.asked
    refute chat.subscription?(pattern: "n*")
  end

  def test_subscriptions_that_cannot_be_are_said
    chat, _, client = opened(Noting.new)

    assert_raises(ArgumentError) { chat.subscribe }
    assert_raises(NotImplementedError) { chat.subscribe(channel: "news", engine: Object.new) }
    client.close

    assert_nil chat.subscribe(channel: "news")
    refute chat.subscription?(channel: "news")
  end

  private

  # Returns the env after a request to an application with that block.
  def request(offered = :websocket)
    env = { "rack.upgrade?" => offered }
    Fairlead::Compat::Upgrade.new(->(inner) { yield(inner) && [0, {}, []] }).call(env)
    env
  end

  # Returns the handler that Fairlead gets for this object, or class.
  def upgraded(object)
    request { |env| env["upgrade.websocket"] = object }.fetch("rack.upgrade")
  end

  def opened(object)
    handler = upgraded(object)
    client = Fairlead::Test::FakeClient.new
    handler.on_open(client)
    [object, handler, client]
  end

  def texts(clients) = clients.map { |client| client.sent.map(&:first) }
end
