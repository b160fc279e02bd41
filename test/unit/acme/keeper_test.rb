# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "minitest/mock"
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
      attr_accessor :jobs, :outcome, :ran
    end

    attr_reader :order, :challenge

    def initialize(order, _store, challenge, replaces:, recalled:, log:)
      @order = order
      @replaces = replaces
      @recalled = recalled
      @log = log
      @challenge = challenge
      self.class.jobs << self
    end

    def run
      self.class.ran += 1
      self.class.outcome.call(self)
    end

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
      assert_match(/the one in use is valid until/, @lines.string)
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

  # A clock that is wrong by months: each new certificate is due at once.
  def test_the_pauses_grow_while_every_new_certificate_is_due_at_once
    with_keeper("a.example") do |keeper, store|
      succeed(store, begins: Time.now - (89 * 86_400), ends: Time.now + 86_400)
      attempts = attempts_within(keeper, 600)

      assert_includes 3..4, attempts
      assert_equal %i[reload_certificates] * attempts, @server.asked
      assert_match(/is due for renewal at once/, @lines.string)
    end
  end

  # Neither the failures nor what was issued can be written.
  def test_a_folder_that_cannot_be_written_to_shortens_no_pause
    with_keeper("a.example") do |keeper, store|
      [store.failure(order("a.example")), store.certificate(order("a.example"))].each { |name| Dir.mkdir(in_the_way(store, name)) }
      orders = 0
      Job.outcome = ->(job) { (orders += 1) && { outcome: "failed", type: "storage", message: "no room", text: pem(*job.order.hosts) } }
      attempts = attempts_within(keeper, 600)

      assert_equal 1, orders, "what was issued is not ordered again"
      assert_includes 3..4, attempts
      assert_match(/the failure of the order for a.example cannot be kept in acme_dir/, @lines.string)
      Dir.rmdir(store.path_of(order("a.example")))
      later(keeper, 3600)

      assert_equal 1, orders
      assert File.file?(store.path_of(order("a.example")))
    end
  end

  def test_a_certificate_whose_file_disappears_is_written_again_and_stays_in_the_report
    with_keeper("a.example") do |keeper, store|
      succeed(store)
      look(keeper)
      File.unlink(store.path_of(order("a.example")))
      look(keeper)

      assert_equal 1, Job.jobs.size
      refute_nil keeper.report.first[:expires_at]
      later(keeper, Fairlead::Acme::Schedule::MISSING_PAUSE + 1)

      assert_equal 1, Job.ran
      assert File.file?(store.path_of(order("a.example")))
      assert_equal %i[reload_certificates] * 2, @server.asked
      assert_match(/written again from memory/, @lines.string)
    end
  end

  # As a machine whose folder is cleaned, or a disk that fails, again and again.
  def test_a_file_that_always_disappears_makes_no_orders
    with_keeper("a.example") do |keeper, store|
      succeed(store)
      now = Time.now
      (0..600).step(3) { |passed| Time.stub(:now, -> { now + passed }) { look(keeper) } && FileUtils.rm_f(store.path_of(order("a.example"))) }

      assert_equal 1, Job.ran
    end
  end

  def test_an_order_that_hangs_delays_no_other
    with_keeper("a.example", "b.example", "c.example") do |keeper, store|
      store.folder.write(*store.account(order("a.example")), "{}")
      Job.outcome = lambda do |job|
        wait_until("the end") { job.stopped? } if job.order.name == "a.example"
        store.folder.write(*store.certificate(job.order), pem(*job.order.hosts))
        { outcome: "issued" }
      end
      keeper.look(:ready)
      wait_until("the other orders") { keeper.report.count { |order| order[:expires_at] } == 2 }
      5.times { keeper.look(:ready) }

      assert_equal(%w[a.example b.example c.example], Job.jobs.map { |job| job.order.name }.sort)
    end
  end

  # It would make several accounts, and hang several times.
  def test_an_authority_without_an_account_gets_one_order_at_a_time
    with_keeper("a.example", "b.example") do |keeper|
      Job.outcome = ->(job) { wait_until("the end") { job.stopped? } && { outcome: "busy" } }
      3.times { look_once(keeper) }

      assert_equal 1, Job.jobs.size
    end
  end

  def test_what_another_process_orders_is_waited_for
    with_keeper("a.example") do |keeper|
      Job.outcome = ->(_) { { outcome: "busy" } }
      3.times { look(keeper) }

      assert_equal 1, Job.jobs.size
      assert_equal [0, Keeper::BUSY], keeper.report.first.values_at(:failures, :error)
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
      look_once(keeper)
      keeper.close

      assert_equal 1, Job.jobs.size
      assert_empty @lines.string
    end
  end

  # A disk can hang.
  def test_a_look_and_the_end_wait_for_no_file
    with_keeper("a.example") do |keeper|
      with_hanging_files(keeper) do |entered|
        2.times { keeper.look(:ready) }
        entered.pop
        ending = Thread.new { keeper.close }

        assert ending.join(60), "the end waits"
      end
    end
  end

  def test_a_folder_that_cannot_be_used_is_told_once_and_tried_again
    with_keeper("a.example") do |keeper, store|
      File.chmod(0o777, store.folder.path)
      3.times { look(keeper) }

      assert_empty Job.jobs
      assert_equal 1, @lines.string.scan("nothing can be kept").size
      assert_includes keeper.report.first[:error], "nothing can be kept"
      File.chmod(0o700, store.folder.path)
      look(keeper)

      assert_equal 1, Job.jobs.size
    end
  end

  private

  def with_keeper(*hosts, scheme: "http", **keywords)
    in_folder do |folder|
      configuration = Fairlead::Configuration.from_options(acme: hosts.map { |host| order(host, **keywords) }, acme_dir: folder)
      Job.jobs = []
      Job.ran = 0
      fail_with("nothing")
      log = Fairlead::EventLog.new(output: StringIO.new, errors: @lines = StringIO.new)
      keeper = Keeper.new(@server = Server.new([]), Service.new(configuration, [Listener.new({ scheme: scheme })], log), jobs: Job)
      yield keeper, Fairlead::Acme::Store.new(folder)
      keeper.close
    end
  end

  # A look at the file of a certificate, which is told to the block, waits until the block has ended.
  def with_hanging_files(keeper)
    entered = Thread::Queue.new
    disk = Thread::Queue.new
    keeper.instance_variable_get(:@store).stub(:state_of_certificate, ->(_order) { (entered << true) && disk.pop }) { yield entered }
  ensure
    disk.close
    wait_until("the threads") { Thread.list.none? { |thread| thread.name == "fairlead acme" } }
  end

  # One look, which may start orders.
  def look_once(keeper)
    keeper.look(:ready)
    wait_until("the look") { Job.jobs.any? && Thread.list.count { |thread| thread.name == "fairlead acme" } == 1 }
  end

  # One look, and what follows from it.
  def look(keeper, state = :ready)
    keeper.look(state)
    wait_until("the orders") { Thread.list.none? { |thread| thread.name == "fairlead acme" } }
  end

  # The folder that stands where a file ought to be.
  def in_the_way(store, name)
    FileUtils.mkdir_p(store.folder.join(*name[0..-2]))
    store.folder.join(*name)
  end

  # A look by a clock that is ahead, and what follows from it.
  def later(keeper, seconds)
    now = Time.now
    Time.stub(:now, -> { now + seconds }) { look(keeper) }
  end

  # How often something is tried when somebody looks every five seconds for so many seconds.
  def attempts_within(keeper, seconds)
    now = Time.now
    clock = 0
    Time.stub(:now, -> { now + clock }) { (0..seconds).step(5) { |passed| (clock = passed) && look(keeper) } }
    keeper.report.first[:failures]
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
