# frozen_string_literal: true

require "test_helper"
require "support/apart"

class IodineTest < Minitest::Test
  include Fairlead::Test::Apart

  def setup
    require "fairlead/compat/iodine"
    @calls = calls = []
    recorder = Module.new do
      %i[defer run_after run_every subscribe unsubscribe publish].each do |name|
        define_method(name) { |*arguments, **keywords, &block| calls << [name, *arguments, *keywords.to_a.flatten, block].compact }
      end
    end
    Fairlead.singleton_class.prepend(recorder)
  end

  def test_what_is_loaded_says_so
    assert_equal "0.7 (Fairlead #{Fairlead::VERSION})", Iodine::VERSION
    assert_same Fairlead::Client, Iodine::Connection
    assert_nil Iodine.patch_rack
  end

  def test_times_are_milliseconds_and_blocks_come_back
    block = -> { :work }

    assert_same block, Iodine.run_after(1500, &block)
    assert_same block, Iodine.run_every(20, &block)
    assert_same block, Iodine.run_every(20, nil, &block)
    assert_same block, Iodine.run_every(20, 3, &block)
    assert_equal [[:run_after, 1.5, block], [:run_every, 0.02, block], [:run_every, 0.02, block], [:run_every, 0.02, 3, block]], @calls
  end

  def test_a_time_is_an_integer
    [1.5, "20", nil].each { |time| assert_raises(TypeError) { Iodine.run_after(time) { nil } } }
    assert_raises(TypeError) { Iodine.run_every(20, "3") { nil } }
    assert_raises(ArgumentError) { Iodine.run_after(-1) { nil } }
    assert_empty @calls
  end

  def test_whoever_is_to_run_something_gives_a_block
    assert_raises(ArgumentError) { Iodine.run_after(1) }
    assert_raises(ArgumentError) { Iodine.run_every(1) }
    assert_raises(ArgumentError) { Iodine.run }
    assert_raises(ArgumentError) { Iodine.on_state(:on_start) }
    assert_empty @calls
  end

  def test_tasks_are_deferred
    block = -> { :work }
    %i[run defer on_idle].each { |name| assert_same block, Iodine.public_send(name, &block) }

    assert_equal [[:defer, block]] * 3, @calls
  end

  def test_messages_are_those_of_fairlead
    Iodine.publish("news", "text", Iodine::PubSub::PROCESS)
    Iodine.subscribe("n*", match: :redis) { nil }
    Iodine.unsubscribe("n*")

    assert_equal [:publish, "news", "text", Fairlead::PubSub::PROCESS], @calls[0]
    assert_equal [:subscribe, "n*", :match, :redis], @calls[1][0..3]
    assert_equal [:unsubscribe, "n*"], @calls[2]
  end

  def test_engines_are_those_of_fairlead
    engine = Class.new(Iodine::PubSub::Engine).new
    Iodine::PubSub.default = engine

    assert_same engine, Fairlead::PubSub.default
    assert_same engine, Iodine.default_pubsub

    Iodine::PubSub.dettach(engine)

    assert_same Fairlead::PubSub::CLUSTER, Iodine::PubSub.default
    %i[attach detach reset].each { |name| assert_raises(TypeError) { Iodine::PubSub.public_send(name, Object.new) } }
    assert_raises(TypeError) { Iodine::PubSub.default = "redis" }
  end

  def test_the_root_process_is_this_one_without_workers
    Iodine::PubSub::PUBLISH2ROOT.publish("news", "text")

    assert_equal [[:publish, "news", "text", Fairlead::PubSub::PROCESS]], @calls
  end

  def test_what_is_missing_says_what_to_use_instead
    missing = {
      -> { Iodine::JSON } => /json/, -> { Iodine::Mustache } => /gem mustache/,
      -> { Iodine.connect(url: "ws://localhost") } => /async-websocket/
    }
    missing.each do |attempt, hint|
      error = assert_raises(NotImplementedError, &attempt)
      assert_match hint, error.message
    end
    assert_raises(NameError) { Iodine::Nonsense }
  end

  def test_helpers_of_the_top_level_stand_for_states
    assert_equal(%i[after_fork before_fork on_worker_boot].to_h { |name| [name, true] },
                 %i[after_fork before_fork on_worker_boot].to_h { |name| [name, Object.private_method_defined?(name)] })
    refute_respond_to Object.new, :before_fork
  end
end

class IodineBesideTheGemTest < Minitest::Test
  include Fairlead::Test::Apart

  def test_beside_the_real_one_it_is_an_error
    Object.const_set(:Iodine, Module.new)
    error = assert_raises(Fairlead::Error) { require "fairlead/compat/iodine" }

    assert_match(/the gem iodine is loaded/, error.message)
  end

  def test_it_can_be_required_again
    require "fairlead/compat/iodine"

    refute require("fairlead/compat/iodine")
    assert require("fairlead/compat/upgrade")
  end
end
