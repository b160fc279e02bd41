# frozen_string_literal: true

require "test_helper"
require "support/real_time"

# Channels in one process: names, patterns, blocks, and the subscribers that get a message.
class ChannelsTest < Minitest::Test
  include Fairlead::Test::RealTimeServing

  def test_every_subscriber_of_a_name_hears_it_the_sender_too
    server = pushing(CONSOLE)
    listeners = Array.new(3) { subscribed(server, "'news'") }
    other = subscribed(server, "'other'")

    assert_equal "true", told(listeners.first, "client.publish('news', 'item')")
    assert_equal [["item"]] * 3, listeners.map { |client| heard(client) }
    assert_empty heard(other)
  end

  # Ways to subscribe => result.
  WAYS = {
    "'a'" => '"a"', ":a" => ":a", "to: 'a'" => '"a"', "channel: 'a'" => '"a"', "'a', as: :binary" => '"a"', "'a', false" => '"a"',
    "'a' do |_, message| client.write(message + '!') end" => '"a"', "'a', handler: ->(_, message) { client.write(message + '!') }" => '"a"'
  }.freeze

  def test_there_are_several_ways_to_subscribe
    server = pushing(CONSOLE)
    WAYS.each do |arguments, result|
      client = web_socket(server)
      code = arguments.include?(" do ") ? "client.subscribe(#{arguments.sub(" do ", ") { ").sub(/ end\z/, " }")}" : "client.subscribe(#{arguments})"
      assert_equal result, told(client, code), arguments
      told(client, "client.publish(:a, 'x')")

      assert_equal expected(arguments), client.receive, arguments
    end
  end

  # Patterns of the two kinds => names that they match, names that they do not.
  GLOBS = {
    "news.*" => [%w[news. news.a news.a.b], %w[news anews.a]], "n?ws" => [%w[news n.ws], %w[nws neews]],
    "[a-c]x" => [%w[ax cx], %w[dx x]], "[^a-c]x" => [%w[dx], %w[ax]], "a\\\\*b" => [%w[a*b], %w[axb a\\\\b]], "*" => [["", "x", "a.b"], []]
  }.freeze
  SUBJECTS = { "news.*" => [%w[news.a], %w[news news.a.b]], "news.>" => [%w[news.a news.a.b], %w[news]], "*.b" => [%w[a.b], %w[a.c a.b.c]] }.freeze

  def test_glob_patterns
    ["match: :redis", "true"].each { |kind| check_patterns(GLOBS, kind) }
  end

  def test_subject_patterns
    check_patterns(SUBJECTS, "match: :subject")
  end

  def test_a_block_hears_the_name_that_was_published_to
    client = web_socket(pushing(CONSOLE))
    told(client, "client.subscribe('n*', match: :redis) { |*args| client.write(args.map { |arg| [arg, arg.encoding, arg.frozen?] }.inspect) }")
    told(client, "Fairlead.publish('näws', 'mässage')")

    source, message = %w[näws mässage].map { |text| [text, Encoding::UTF_8, false].inspect }
    assert_equal [:text, "[#{source}, #{message}]"], client.receive

    told(client, "Fairlead.publish('näws', \"\\xff\".b)")
    assert_includes client.receive.last, Encoding::BINARY.inspect
  end

  def test_the_same_name_again_takes_the_place_of_the_first
    client = web_socket(pushing(CONSOLE))
    3.times { |number| told(client, "client.subscribe('a') { |_, message| client.write(message + '#{number}') }") }
    told(client, "client.publish('a', 'x')")

    assert_equal ["x2"], heard(client)
    told(client, "client.subscribe('a')")
    told(client, "client.publish('a', 'y')")
    assert_equal ["y"], heard(client)
  end

  def test_unsubscribe_says_whether_there_was_something
    client = web_socket(pushing(CONSOLE))
    told(client, "client.subscribe(:a)")

    assert_equal %w[true false false], %w[a a b].map { |name| told(client, "client.unsubscribe('#{name}')") }
    told(client, "client.publish('a', 'x')")
    assert_empty heard(client)
  end

  MISTAKES = {
    "client.subscribe(nil)" => "ArgumentError", "client.subscribe(7)" => "TypeError", "client.subscribe('a', 'b', 'c')" => "ArgumentError",
    "Fairlead.subscribe('a')" => "ArgumentError", "Fairlead.publish(nil, 'x')" => "ArgumentError", "Fairlead.publish('a', nil)" => "ArgumentError"
  }.freeze

  def test_mistakes_are_exceptions
    client = web_socket(pushing(CONSOLE))

    MISTAKES.each { |code, error| assert_equal "! #{error}", told(client, code), code }
  end

  def test_subscriptions_of_the_process_have_blocks
    server = pushing(CONSOLE)
    client = web_socket(server)
    told(client, "Fairlead.subscribe('all') { |source, message| Notes.add(source + ' ' + message) }")

    assert_equal "true", told(client, "Fairlead.publish('all', 'one')")
    assert_equal ["all one"], wait_for_notes(server, 1)
    assert_equal "true", told(client, "Fairlead.unsubscribe('all')")
    told(client, "Fairlead.publish('all', 'two'); Fairlead.subscribe('end') { Notes.add('end') }; Fairlead.publish('end', '')")
    assert_equal ["all one", "end"], wait_for_notes(server, 2)
  end

  def test_a_client_that_is_gone_has_no_subscriptions
    server = pushing("#{CONSOLE}\ndef on_close(client) = Notes.add('closed')")
    clients = Array.new(2) { web_socket(server) }
    clients.each { |client| told(client, "client.subscribe('a') { |_, message| Notes.add(message) }") }
    clients.first.drop(reset: true)
    assert_equal ["closed"], wait_for_notes(server, 1)
    requested(server, "Fairlead.publish('a', 'x')")

    assert_equal %w[closed x], wait_for_notes(server, 2)
    requested(server, "Fairlead.publish('a', 'y')")
    assert_equal %w[closed x y], wait_for_notes(server, 3)
  end

  private

  # Result of "x" in a subscription with these arguments. Blocks get bytes, and their writes are sent as such.
  def expected(arguments)
    return [:text, "x!"] if arguments.include?("!")

    arguments.include?("as: :binary") ? [:binary, "x".b] : [:text, "x"]
  end

  # Returns a client of CONSOLE with an active subscription.
  def subscribed(server, arguments)
    client = web_socket(server)
    told(client, "client.subscribe(#{arguments})")
    client
  end

  def check_patterns(patterns, kind)
    server = pushing(CONSOLE)
    patterns.each do |pattern, (matching, others)|
      client = subscribed(server, "\"#{pattern}\", #{kind}")
      [*matching, *others].each { |name| told(client, "client.publish(\"#{name}\", \"#{name}\")") }

      assert_equal matching, heard(client), pattern
      client.drop
    end
  end
end
