# frozen_string_literal: true

require "test_helper"
require "stringio"

class WatchdogTest < Minitest::Test
  Child = Fairlead::Supervisor::Child
  Service = Struct.new(:configuration, :log)

  # The board of the workers, on which the test writes.
  class Board < Hash
    alias heartbeat_age []

    def given_up = @given_up ||= []
    def give_up(slot) = given_up << slot
  end

  # A child that notes its signals instead of getting them.
  class NotedChild < Child
    def signals = @signals ||= []
    def signal(name) = signals << name
  end

  # A link that notes what is asked for.
  class NotedLink
    def asked = @asked ||= []
    def send(kind) = asked << kind
  end

  def setup
    @errors = StringIO.new
    @board = Board.new
    @children = Fairlead::Supervisor::Children.new
    configuration = Fairlead::Configuration.from_options(worker_timeout: 10, worker_boot_timeout: 20)
    @generations = []
    service = Service.new(configuration, Fairlead::EventLog.new(errors: @errors))
    @watchdog = Fairlead::Supervisor::Watchdog.new(service, @board, @children, @generations)
    @child = @children.add(NotedChild.new(index: 0, slot: 0, generation: 1, link: NotedLink.new, now: 100.0, pid: 99))
  end

  def test_a_worker_that_shows_signs_of_life_is_left_alone
    @child.booted!
    @board[0] = 10.0
    @watchdog.check(1000.0)

    assert_empty @child.signals
    assert_empty @board.given_up
  end

  def test_a_worker_that_shows_none_is_ended_and_killed_when_it_does_not_end
    @child.booted!
    @board[0] = 10.1
    [200.0, 201.0, 202.0, 203.0].each { |now| @watchdog.check(now) }

    assert_equal [[:drain], %w[KILL], [0]], [@child.link.asked, @child.signals, @board.given_up]
    assert_predicate @child, :unfit?
    assert_match(/\Aworker 0 \(pid 99\) has shown no sign of life for 10 s.*\nworker 0 \(pid 99\) did not end in time/, @errors.string)
  end

  def test_a_worker_that_is_not_ready_in_time_is_ended
    @watchdog.check(120.0)
    assert_empty @child.signals
    @watchdog.check(120.5)

    assert_equal %w[TERM], @child.signals
    assert_includes @errors.string, "not ready after 20 s"
  end

  def test_a_spawner_that_does_not_end_is_killed
    generation = NotedGeneration.new(2, 150.0)
    @generations << generation
    [149.0, 150.0].each { |now| @watchdog.check(now) }

    assert_equal [150.0], generation.killed
    assert_includes @errors.string, "the spawner of generation 2 did not end in time"
  end

  def test_a_spawner_that_is_not_ready_in_time_is_told_of_once_and_goes_on
    @child.booted!
    @generations << NotedGeneration.new(2, nil, 98, true) << NotedGeneration.new(1, nil, 97, false)
    [100.0, 120.0].each { |now| @watchdog.check(now) }

    assert_empty @errors.string
    [120.5, 130.0].each { |now| @watchdog.check(now) }

    assert_equal ["the spawner of generation 2 (pid 98) is not ready after 20 s"], @errors.string.scan(/^the spawner .* s(?=:)/)
    assert_empty @generations.flat_map(&:killed)
  end

  NotedGeneration = Struct.new(:number, :kill_at, :pid, :loading) do
    def loading? = loading == true

    def killed = @killed ||= []

    def kill
      killed << kill_at
      self.kill_at = nil
    end
  end

  def test_it_looks_at_intervals_and_when_somebody_is_to_be_killed
    assert_equal 1.0, @watchdog.pause(100.0)
    @child.terminate(100.25)

    assert_equal 0.25, @watchdog.pause(100.0)
    assert_equal 0, @watchdog.pause(101.0)
  end
end
