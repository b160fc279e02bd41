# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

# What is ordered when, with an authority that is one method: what each process that orders has to say.
class AcmeKeeperTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting

  Keeper = Fairlead::Acme::Keeper
  Listener = Struct.new(:address)

  # In place of Acme::Job.
  class Job
    class << self
      attr_accessor :jobs, :outcome
    end

    attr_reader :order, :challenge

    def initialize(order, folder, challenge)
      @order = order
      @folder = folder
      @challenge = challenge
      self.class.jobs << self
    end

    def run = self.class.outcome.call(self)

    def stop = @stopped = true

    def stopped? = @stopped == true
  end

  # In place of a Supervisor, a Service and an EventLog.
  Server = Struct.new(:asked) do
    def ask(what) = asked << what
  end
  Service = Struct.new(:configuration, :listeners, :log)

  def test_nothing_is_ordered_before_somebody_serves
    with_keeper("a.example") do |keeper|
      %i[starting draining].each { |state| look(keeper, state) }

      assert_empty Job.jobs
      look(keeper, :restarting)

      assert_equal 1, Job.jobs.size
    end
  end

  def test_orders_are_placed_one_after_the_other_and_the_server_shows_what_has_come
    with_keeper("a.example", "b.example") do |keeper, store|
      succeed(store)
      2.times { look(keeper) }

      assert_equal(%w[a.example b.example], Job.jobs.map { |job| job.order.name })
      assert_equal %i[reload_certificates] * 2, @server.asked
      assert_equal [0, 0], keeper.report.map { |order| order[:failures] }
    end
  end

  def test_a_failure_is_not_repeated_at_once
    with_keeper("a.example") do |keeper|
      fail_with("refused")
      3.times { look(keeper) }

      assert_equal 1, Job.jobs.size
      assert_empty @server.asked
      assert_equal [1, "refused"], keeper.report.first.values_at(:failures, :error)
      assert_match(/refused; next attempt at .*; there is no other one/, @lines.string)
    end
  end

  def test_an_old_certificate_stays_when_there_is_no_new_one
    with_keeper("a.example") do |keeper, store|
      store.folder.write(*store.certificate(order("a.example")), old = pem("a.example", begins: Time.now - 3000, ends: Time.now + 600))
      fail_with("refused")
      look(keeper)

      assert_equal old, store.folder.read(*store.certificate(order("a.example")))
      assert_match(/the old one is valid until/, @lines.string)
    end
  end

  # By its clock, or by ours.
  def test_what_is_issued_too_late_is_not_ordered_again_and_again
    with_keeper("a.example") do |keeper, store|
      succeed(store, begins: Time.now - 3600, ends: Time.now + 60)
      3.times { look(keeper) }

      assert_equal 1, Job.jobs.size
    end
  end

  def test_what_another_process_orders_is_waited_for
    with_keeper("a.example") do |keeper|
      Job.outcome = ->(_) { { outcome: "busy" } }
      3.times { look(keeper) }

      assert_equal 1, Job.jobs.size
      assert_equal 0, keeper.report.first[:failures]
    end
  end

  def test_the_listeners_decide_on_the_challenge_unless_the_order_does
    { "http" => "http-01", "https" => "tls-alpn-01" }.each do |scheme, challenge|
      with_keeper("a.example", scheme: scheme) do |keeper|
        look(keeper)

        assert_equal challenge, Job.jobs.first.challenge
      end
    end
    with_keeper("a.example", challenge: "tls-alpn-01") do |keeper|
      look(keeper)

      assert_equal "tls-alpn-01", Job.jobs.first.challenge
    end
  end

  def test_the_end_ends_the_order_and_says_nothing_of_it
    with_keeper("a.example", "b.example") do |keeper|
      Job.outcome = ->(job) { wait_until("the end") { job.stopped? } && { outcome: "failed", type: "process", message: "killed" } }
      keeper.look(:ready)
      wait_until("the first order") { Job.jobs.any? }
      keeper.close

      assert_equal 1, Job.jobs.size
      assert_empty @lines.string
    end
  end

  private

  def with_keeper(*hosts, scheme: "http", **keywords)
    in_folder do |folder|
      configuration = Fairlead::Configuration.from_options(acme: hosts.map { |host| order(host, **keywords) }, acme_dir: folder)
      Job.jobs = []
      fail_with("nothing")
      log = Fairlead::EventLog.new(output: StringIO.new, errors: @lines = StringIO.new)
      keeper = Keeper.new(@server = Server.new([]), Service.new(configuration, [Listener.new({ scheme: scheme })], log), jobs: Job)
      yield keeper, Fairlead::Acme::Store.new(folder)
      keeper.close
    end
  end

  # One look, and what follows from it.
  def look(keeper, state = :ready)
    keeper.look(state)
    wait_until("the orders") { Thread.list.none? { |thread| thread.name == "fairlead acme" } }
  end

  def fail_with(reason)
    Job.outcome = ->(_) { { outcome: "failed", type: "unauthorized", message: reason, retry_after: nil } }
  end

  def succeed(store, **times)
    Job.outcome = lambda do |job|
      store.folder.write(*store.certificate(job.order), pem(*job.order.hosts, **times))
      { outcome: "issued" }
    end
  end
end
