# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "support/acme_orders"

class AcmeScheduleTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  Schedule = Fairlead::Acme::Schedule

  def test_what_was_never_ordered_is_due_at_once
    with_store { |store| assert_predicate Schedule.read(order("a.example"), store), :due? }
  end

  def test_a_certificate_is_due_when_it_is_to_be_renewed
    with_store do |store|
      put(store, pem("a.example", begins: Time.now - 10, ends: Time.now + 3600))
      schedule = Schedule.read(order("a.example"), store)

      refute_predicate schedule, :due?
      assert schedule.due?(schedule.certificate.renew_at)
      assert_operator schedule.at, :<, schedule.certificate.expires_at
    end
  end

  def test_a_certificate_for_other_hosts_is_due_at_once
    with_store do |store|
      put(store, pem("a.example"))

      assert_predicate Schedule.read(order("a.example", "b.example"), store), :due?
    end
  end

  def test_after_a_failure_it_is_not_due_even_for_another_process
    with_store do |store|
      Schedule.read(order("a.example"), store).failed(problem)
      schedule = Schedule.read(order("a.example"), store)

      refute_predicate schedule, :due?
      assert schedule.due?(Time.now + 100)
      assert_equal "refused", schedule.failure.reason
    end
  end

  def test_deleting_the_file_makes_it_due
    with_store do |store|
      schedule = Schedule.read(order("a.example"), store)
      schedule.failed(problem)
      store.folder.delete(*store.failure(order("a.example")))

      assert_predicate schedule, :due?
      assert_nil schedule.failure
    end
  end

  # What cannot be written counts all the same, and is not forgiven because there is no file.
  def test_a_failure_that_cannot_be_written_stays_in_memory
    with_store do |store|
      block(store.failure(order("a.example")), store)
      schedule = Schedule.read(order("a.example"), store)
      3.times { |count| assert_match(/directory/i, schedule.failed(problem).to_s, count.to_s) }
      schedule.read

      refute_predicate schedule, :due?
      assert_equal 3, schedule.failure.count
      assert_operator schedule.at, :>, Time.now + 180
    end
  end

  def test_a_folder_that_is_gone_forgives_nothing
    with_store do |store|
      schedule = Schedule.read(order("a.example"), store)
      schedule.failed(problem)
      FileUtils.rm_rf(File.dirname(store.path_of(order("a.example"))))

      refute_predicate schedule, :due?
    end
  end

  def test_a_wrong_clock_or_a_damaged_file_puts_nothing_off_for_ever
    with_store do |store|
      failed = Fairlead::Acme::Failure.after(nil, order("a.example"), problem, now: Time.now + (30 * 365 * 86_400))
      store.folder.write(*store.failure(order("a.example")), failed.to_json)

      assert_operator Schedule.read(order("a.example"), store).at, :<=, Time.now + Fairlead::Acme::Failure::LONGEST
      schedule = Schedule.read(order("a.example"), store)
      schedule.failed(problem)
      schedule.due?(Time.now - (30 * 365 * 86_400))

      assert_operator schedule.at, :<=, Time.now
    end
  end

  DAMAGES = [->(path) { File.unlink(path) }, ->(path) { File.write(path, "") }, ->(path) { File.write(path, File.read(path)[0, 300]) },
             ->(path) { File.unlink(path) && File.mkfifo(path) }, ->(path) { FileUtils.rm_rf(File.dirname(path, 2)) }].freeze

  # It may come back; if it does not, it is written again.
  def test_a_certificate_whose_file_is_missing_or_damaged_stays_and_is_written_again
    DAMAGES.each do |damage|
      with_store do |store|
        put(store, text = pem("a.example"))
        schedule = Schedule.read(order("a.example"), store)
        damage.call(path = store.path_of(order("a.example")))

        refute_predicate schedule, :due?
        assert schedule.due?(later = Time.now + Schedule::MISSING_PAUSE + 1)
        refute schedule.wanted?(later)
        refute_nil schedule.certificate
        assert schedule.restore(later)
        assert_equal text, File.read(path)
        refute schedule.due?(later)
      end
    end
  end

  def test_a_file_that_comes_back_is_not_written_again
    with_store do |store|
      put(store, pem("a.example"))
      schedule = Schedule.read(order("a.example"), store)
      File.unlink(store.path_of(order("a.example")))
      schedule.due?
      assert schedule.due?(later = Time.now + Schedule::MISSING_PAUSE + 1)
      put(store, other = pem("a.example"))

      refute schedule.restore(later)
      refute schedule.due?(later)
      assert_equal other, File.read(store.path_of(order("a.example")))
    end
  end

  def test_a_file_that_cannot_be_written_again_is_told_of_once_and_tried_again
    with_store do |store|
      put(store, pem("a.example"))
      schedule = Schedule.read(order("a.example"), store, log: Log.new(lines = []))
      File.unlink(path = store.path_of(order("a.example")))
      block(store.certificate(order("a.example")), store)
      schedule.due?
      now = Time.now
      times = [11, 71, 131].map { |seconds| now + seconds }
      times.each { |time| assert schedule.due?(time) && !schedule.restore(time) }
      refute schedule.lost?(times.last + 50)

      assert_equal 1, lines.grep(/directory/i).grep(/not restored/).size
      Dir.rmdir(path)
      assert schedule.due?(now + 191) && schedule.restore(now + 191)
    end
  end

  def test_nothing_is_written_while_another_process_orders
    with_store do |store|
      put(store, pem("a.example"))
      schedule = Schedule.read(order("a.example"), store)
      File.unlink(store.path_of(order("a.example")))
      schedule.due?
      later = Time.now + Schedule::MISSING_PAUSE + 1
      store.exclusively_for(["a.example"]) { refute schedule.restore(later) }

      refute schedule.due?(later)
      assert schedule.restore(later + Schedule::MISSING_PAUSE)
    end
  end

  def test_state_that_cannot_be_used_is_none_and_is_told
    damages = { certificate: ["", "x", pem("a.example")[0, 300], nil], failure: ["", "[1", "\xff".b, nil] }
    damages.each do |kind, texts|
      texts.each do |text|
        with_store do |store|
          name = store.public_send(kind, order("a.example"))
          text ? store.folder.write(*name, text) : block(name, store)
          schedule = Schedule.read(order("a.example"), store, log: Log.new(lines = []))

          assert_predicate schedule, :due?, "#{kind}: #{text.inspect}"
          assert_equal 1, lines.size, "#{kind}: #{text.inspect}"
          assert_includes lines.first, store.folder.join(*name)
        end
      end
    end
  end

  def test_a_new_certificate_that_is_due_at_once_is_a_problem
    with_store do |store|
      schedule = Schedule.read(order("a.example"), store)
      put(store, pem("a.example", begins: Time.now - (89 * 86_400), ends: Time.now + 86_400))
      2.times { schedule.failed(schedule.succeeded) }

      assert_match(/is due for renewal at once: the clock/, schedule.failure.reason)
      assert_equal 2, schedule.failure.count
      refute_predicate schedule, :due?
      refute_nil schedule.certificate
    end
  end

  def test_a_certificate_that_could_not_be_written_is_written_later
    with_store do |store|
      schedule = Schedule.read(order("a.example"), store)

      refute schedule.write_held
      schedule.hold(text = pem("a.example"))
      block(store.certificate(order("a.example")), store)
      assert_raises(SystemCallError) { schedule.write_held }
      Dir.rmdir(store.path_of(order("a.example")))

      assert schedule.write_held
      assert_equal text, store.folder.read(*store.certificate(order("a.example")))
      refute schedule.write_held
    end
  end

  def test_orders_for_other_hosts_have_other_files
    hosts = [%w[a.example], %w[a.example b.example], %w[a.example c.example], ["#{"a." * 120}example"]]
    one, two, three, long = hosts.map { |names| order(*names) }
    with_store do |store|
      assert_equal 4, [one, two, three, long].map { |order| store.path_of(order) }.uniq.size
      assert_equal "a.example.pem", File.basename(store.path_of(one))
      store.folder.write(*store.failure(long), "x")

      assert_equal store.path_of(two), store.path_of(order("a.example", "b.example", contact: "admin@a.example"))
    end
  end

  def test_success_forgets_the_failures
    with_store do |store|
      schedule = Schedule.read(order("a.example"), store)
      schedule.failed(problem)
      put(store, pem("a.example"))
      schedule.succeeded

      refute_predicate schedule, :due?
      assert_nil Schedule.read(order("a.example"), store).failure
    end
  end

  def test_it_can_be_put_off_for_another_process
    with_store do |store|
      schedule = Schedule.read(order("a.example"), store)
      schedule.put_off

      refute_predicate schedule, :due?
      assert schedule.due?(Time.now + Schedule::BUSY_PAUSE + 1)
    end
  end

  private

  def with_store
    in_folder { |folder| yield Fairlead::Acme::Store.new(folder) }
  end

  Log = Struct.new(:lines) do
    def acme_state_unusable(text) = lines << text
    def acme_not_restored(_, reason) = lines << "not restored: #{reason}"
    def acme_restored(_) = nil
  end

  # A folder is where a file ought to be.
  def block(name, store) = FileUtils.mkdir_p(store.folder.join(*name))

  def put(store, text) = store.folder.write(*store.certificate(order("a.example")), text)

  def problem = Fairlead::Acme::Problem.new("unauthorized", "refused")
end
