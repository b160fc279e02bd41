# frozen_string_literal: true

require "test_helper"
require "stringio"

class SupervisorCertificatesTest < Minitest::Test
  Child = Fairlead::Supervisor::Child
  Generation = Fairlead::Supervisor::Generation
  Service = Struct.new(:log, :tls)
  Offer = Struct.new(:key, :location, :fingerprint)
  Workforce = Struct.new(:children, :now) do
    def terminate(child) = child.terminate(now + 10)
  end

  # Calls the block as the main loop does.
  class Signals
    def ping = yield
  end

  # Offers that change when the test says so.
  class Offers
    def start(&block) = @changed = block
    def tend = nil
    def change(offer) = @changed.call(offer)
  end

  # A link that notes what is asked for.
  class NotedLink
    def asked = @asked ||= []
    def send(*message) = asked << message
  end

  def setup
    @output = StringIO.new
    @children = [0, 1].map { |index| child(index) }
    @generation = Generation.new(1, 50, NotedLink.new, ready: true)
    @workforce = Workforce.new(@children, 100.0)
    @offers = Offers.new
    service = Service.new(Fairlead::EventLog.new(logger: @output), @offers)
    @certificates = Fairlead::Supervisor::Certificates.new(service, Signals.new, @workforce, { 1 => @generation }.then { |all| Found.new(all) })
    @certificates.start
  end

  def test_all_are_asked_and_reloaded_is_said_when_all_workers_have_it
    change

    assert_equal [[:reload_certificates, "key", "ssl://a:1", "f"]], [*@children, @generation].flat_map { |one| one.link.asked }.uniq
    @certificates.answered(@children.first, "key")
    assert_empty @output.string
    @certificates.answered(@children.last, "key")
    2.times { @certificates.tend }
    assert_equal "certificates reloaded for ssl://a:1\n", @output.string
  end

  def test_one_that_cannot_is_told_of_once_and_a_new_one_is_asked_when_it_serves
    change
    2.times { @certificates.answered(@children.last, "key", "EMFILE") }
    @certificates.answered(@generation, "key", "EMFILE")
    assert_equal 2, @output.string.lines.grep(/not reloaded for ssl:\/\/a:1 in (worker 1|the spawner of generation 1) .*: EMFILE/).size
    assert_equal 2, @output.string.lines.size
    @children << child(2)
    @certificates.bring_to(@children.last)
    assert_equal 1, @children.last.link.asked.size
  end

  def test_workers_that_stay_behind_are_replaced_one_by_one_once_their_spawner_is_not
    change
    @workforce.now = 131.0
    @certificates.answered(@children.first, "key", "EMFILE")
    @certificates.tend
    assert_empty ending
    @certificates.answered(@generation, "key")
    2.times { @certificates.tend }

    assert_equal [@children.first], ending
    @children[0] = child(0, now: 131.0)
    @certificates.tend
    assert_equal [@children.last], ending
    assert_equal [0, 1], @output.string.scan(/worker (\d) .* still has the former certificates/).flatten.map(&:to_i)
  end

  private

  # As Generations finds and lists them.
  Found = Struct.new(:by_number) do
    def [](number) = by_number[number]
    def to_a = by_number.values
  end
  private_constant :Found

  def change = @offers.change(Offer.new("key", "ssl://a:1", "f"))

  def ending = @children.select(&:ending?)

  def child(index, now: 50.0)
    Child.new(index: index, slot: index, generation: 1, link: NotedLink.new, now: now, pid: 90 + index).tap(&:booted!)
  end
end
