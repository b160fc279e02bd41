# frozen_string_literal: true

require "test_helper"
$LOAD_PATH.push(File.expand_path("../../../../support/nats_stub", __dir__)) # last: the gem comes first

class NATSSubjectsTest < Minitest::Test
  # Channel => the part of its subject after the prefix.
  SUBJECTS = {
    "news" => "news", "a.b" => "a.b", "" => "%", "." => "%.%", "a..b" => "a.%.b", ".a" => "%.a", "a." => "a.%", "a b" => "a%20b", "*" => "%2A",
    ">" => "%3E", "a.*" => "a.%2A", "%" => "%25", "%2A" => "%252A", "\r\n" => "%0D%0A", "\0" => "%00", "n\u00FC" => "n%C3%BC",
    "\xFF" => "%FF", "$SYS.>" => "$SYS.%3E", "room/42:x#1?" => "room/42:x#1?"
  }.transform_keys(&:b).freeze

  def setup
    @subjects = Fairlead::PubSub::NATS::Subjects.new("app.one")
  end

  def test_a_channel_has_a_subject_that_nats_takes_and_that_leads_back
    SUBJECTS.each do |channel, subject|
      assert_equal "app.one.#{subject}", @subjects.subject(channel), channel.inspect
      assert_equal [channel, Encoding::BINARY], [@subjects.channel("app.one.#{subject}"), @subjects.channel("app.one.#{subject}").encoding]
    end
  end

  def test_random_bytes_lead_back
    random = Random.new(1)
    1_000.times do
      channel = Array.new(random.rand(8)) { [random.bytes(1), ".", "%", " "].sample(random: random) }.join.b
      subject = @subjects.subject(channel)
      assert_match(/\Aapp\.one(?:\.[!-\-\/-~]+)+\z/, subject)
      assert_equal channel, @subjects.channel(subject)
    end
  end

  def test_a_name_that_is_too_long_becomes_a_digest
    names = ["x" * 3_000, "#{"x" * 2_999}y", "a.#{"\xFF" * 1_000}"].map(&:b)
    subjects = names.map { |name| @subjects.subject(name) }

    assert_equal subjects.uniq, subjects
    assert(subjects.all? { |subject| @subjects.digest?(subject) && subject.bytesize < 100 })
    names.each { |name| assert_equal name, @subjects.unescape(@subjects.escape(name)) }
    refute @subjects.digest?(@subjects.subject("%%x"))
  end

  def test_patterns_become_subjects_that_match_at_least_as_much
    assert_equal "app.one.news.*.sport", @subjects.entry("news.*.sport", :subject)
    assert_equal "app.one.a%20b.>", @subjects.entry("a b.>", :subject)
    assert_equal "app.one.x%2A.%", @subjects.entry("x*.", :subject)
    assert_equal "app.one.>", @subjects.entry("n*", :redis)
    assert_equal "app.one.news.de.>", @subjects.entry("news.de.s[a-z]*.x", :redis)
    assert_equal "app.one.>", @subjects.entry("x" * 3_000, :subject)
  end

  def test_other_subjects_are_no_channels
    assert_nil @subjects.channel("app.two.news")
    assert_nil @subjects.channel("app.one")
  end

  def test_a_prefix_consists_of_tokens
    ["", ".", "a.", "a b", "*", "a.>"].each do |prefix|
      assert_raises(ArgumentError, prefix) { Fairlead::PubSub::NATS::Subjects.new(prefix) }
    end
  end
end
