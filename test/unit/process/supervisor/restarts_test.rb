# frozen_string_literal: true

require "test_helper"
require "stringio"

# How one restart follows another, with spawners that are only written down.
class RestartsTest < Minitest::Test
  Generation = Struct.new(:number, :ready, :ended) do
    def ready? = ready
    def warm? = false
    def end(_) = self.ended = true
    def booted = nil
  end

  Child = Struct.new(:generation, :ending) do
    def ending? = ending
    def booted? = true
    def index = 0
  end

  # A workforce that starts nothing.
  class Workforce
    attr_reader :children

    def initialize = @children = [Child.new(2, false)]
    def forgive = nil
    def give_up_unready(_) = nil
    def now = 0
    def deadline = 0
  end

  # Starts generations that are not ready yet.
  class Generations
    attr_accessor :current
    attr_reader :started

    def initialize(current)
      @current = current
      @started = []
    end

    def start(fresh:) = Generation.new(@started.size + 2, !fresh, false).tap { |generation| @started << generation }
  end

  def setup
    @first = Generation.new(1, true, false)
    @generations = Generations.new(@first)
    log = Fairlead::EventLog.new(output: StringIO.new, errors: StringIO.new)
    @restarts = Fairlead::Supervisor::Restarts.new(Workforce.new, @generations, log)
  end

  def test_new_code_that_is_still_loaded_gives_way_to_the_next_restart
    2.times { @restarts.begin(:phased) }

    assert_equal [true, false], @generations.started.map(&:ended)
  end

  def test_a_hot_restart_takes_the_place_of_new_code_that_is_still_loaded_only
    @restarts.begin(:phased)
    @restarts.give_way

    assert_equal [false, [true]], [@restarts.running?, @generations.started.map(&:ended)]
    @restarts.begin(:phased)
    @generations.started.last.ready = true
    @restarts.give_way

    assert_equal [true, [true, false]], [@restarts.running?, @generations.started.map(&:ended)]
  end

  def test_after_a_failure_the_old_generation_stays_even_if_another_restart_begins_before_it_is_back
    @restarts.begin(:phased)
    @restarts.target_failed("broken")
    @restarts.advance
    @first.ready = false # its spawner is lost, and another one is loading
    @restarts.begin(:phased)

    refute @first.ended
    assert_equal 2, @generations.started.size
    assert @restarts.target?(@generations.started.last)
  end
end
