# frozen_string_literal: true

require "test_helper"
require "stringio"

class HandoverTest < Minitest::Test
  Handover = Fairlead::Handover

  # The handler of a client that can move; its class takes it over.
  class Chat
    attr_reader :seen

    def self.on_takeover(client, state) = state == "no" ? nil : new(state, client.env)
    def initialize(state, env = nil) = @seen = [state, env]
    def on_handover(_client) = @seen.first
  end

  # A handler without objects.
  module Still
    def self.on_handover(client) = client.env["HTTP_X"]
    def self.on_takeover(_client, _state) = self
  end

  # A class that cannot take over.
  class Old
    def on_handover(_client) = "state"
  end

  # A client as the extension has it.
  class Client
    attr_reader :env, :protocol
    attr_accessor :handler

    def initialize(handler = nil, env: {}, protocol: :websocket)
      @handler = handler
      @env = env
      @protocol = protocol
    end

    private

    def begin_with_env(env) = @env = env
    def begin_with_handler(handler) = @handler = handler
  end

  def setup
    @lines = StringIO.new
    log = Fairlead::EventLog.new(output: @lines, errors: @lines)
    Fairlead::Background.current.instance_variable_set(:@log, log)
    Handover.instance_variable_set(:@told, {})
  end

  def teardown
    Fairlead::Background.current.instance_variable_set(:@log, nil)
  end

  def test_state_and_request_arrive_at_a_handler_of_the_new_code
    ["", "grün", "\xFF\x00".b].each do |state|
      client = moved(Client.new(Chat.new(state), env: { "PATH_INFO" => "/chat", "warden" => Object.new }))

      assert_instance_of Chat, client.handler
      assert_equal [state, { "PATH_INFO" => "/chat", "rack.errors" => $stderr }], client.handler.seen
      assert_same client.env, client.handler.seen.last
    end
  end

  def test_a_module_is_a_handler_too
    assert_same Still, moved(Client.new(Still, env: { "HTTP_X" => "1" })).handler
  end

  def test_a_client_without_a_state_stays
    assert_nil Handover.of(Client.new(Chat.new(nil)))
    assert_nil Handover.of(Client.new(Chat.new(false)))
    assert_empty @lines.string
  end

  def test_an_event_stream_that_only_delivers_moves_without_its_handler
    assert_equal true, Handover.of(Client.new(Chat.new(true), protocol: :sse))
    assert_nil Handover.of(Client.new(Chat.new(true)))
  end

  def test_any_other_state_is_an_error
    error = assert_raises(TypeError) { Handover.of(Client.new(Chat.new(:state))) }

    assert_equal "HandoverTest::Chat: on_handover returns a String or nil, not Symbol", error.message
  end

  def test_a_handler_without_a_name_stays_and_the_log_says_so_once
    2.times { assert_nil Handover.of(Client.new(Class.new(Chat).new("x"))) }
    gone = Class.new(Chat) { def self.name = "Chat" }

    assert_nil Handover.of(Client.new(gone.new("x")))
    assert_equal "clients with a handler of an anonymous class cannot move to another process; give the class a constant\n", @lines.string
  end

  def test_a_client_with_too_much_state_stays
    largest = Handover::LARGEST - Handover.of(Client.new(Chat.new(""))).bytesize

    assert_equal Handover::LARGEST, Handover.of(Client.new(Chat.new("x" * largest))).bytesize
    assert_nil Handover.of(Client.new(Chat.new("x" * (largest + 1))))
    assert_equal "a client of HandoverTest::Chat cannot move to another process: its state and its request have 1048577 bytes, and may have " \
                 "1048576\n", @lines.string
  end

  # A handler that notes that it has left.
  class Leaving < Chat
    extend Handover::Resuming

    def handed_over = @seen << :left
  end

  def test_a_handler_hears_that_its_client_has_left_unless_the_client_stays
    small, large = ["x", "x" * Handover::LARGEST].map { |state| Leaving.new(state) }
    states = [small, large].map { |handler| Handover.of(Client.new(handler)) }

    assert_equal [String, NilClass], states.map(&:class)
    assert_equal [:left, nil], [small, large].map { |handler| handler.seen[2] }
  end

  def test_a_client_that_the_new_code_does_not_know_is_refused
    bytes = Handover.of(Client.new(Chat.new("x")))
    refused = [bytes.sub("HandoverTest::Chat", "HandoverTest::Gone"), Handover.of(Client.new(Old.new)), "\x09#{bytes}"]

    refused.each { |state| 2.times { assert_nil Handover.take_over(Client.new, state, {}, nil) } }
    assert_equal ["clients of HandoverTest::Gone cannot be taken over: there is no such class any more\n",
                  "clients of HandoverTest::Old cannot be taken over: HandoverTest::Old.on_takeover is missing\n",
                  "a client cannot be taken over: another version of Fairlead has written its state\n"], @lines.string.lines
  end

  def test_the_new_code_may_refuse_a_client
    client = Client.new

    assert_nil Handover.take_over(client, Handover.of(Client.new(Chat.new("no"))), {}, nil)
    assert_nil client.handler
  end

  private

  # Hands a client over, and returns the one in the new process.
  def moved(client)
    Client.new.tap { |new| assert_equal true, Handover.take_over(new, Handover.of(client), { "rack.errors" => $stderr }, nil) }
  end
end
