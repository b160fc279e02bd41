# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

class AcmeScheduleTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  Schedule = Fairlead::Acme::Schedule

  def test_what_was_never_ordered_is_due_at_once
    with_store { |store| assert_predicate Schedule.new(order("a.example"), store), :due? }
  end

  def test_a_certificate_is_due_when_it_is_to_be_renewed
    with_store do |store|
      put(store, pem("a.example", begins: Time.now - 10, ends: Time.now + 3600))
      schedule = Schedule.new(order("a.example"), store)

      refute_predicate schedule, :due?
      assert schedule.due?(schedule.certificate.renew_at)
      assert_operator schedule.at, :<, schedule.certificate.expires_at
    end
  end

  def test_a_certificate_for_other_hosts_is_due_at_once
    with_store do |store|
      put(store, pem("a.example"))

      assert_predicate Schedule.new(order("a.example", "b.example"), store), :due?
    end
  end

  def test_after_a_failure_it_is_not_due_even_for_another_process
    with_store do |store|
      Schedule.new(order("a.example"), store).failed(problem)
      schedule = Schedule.new(order("a.example"), store)

      refute_predicate schedule, :due?
      assert schedule.due?(Time.now + 100)
      assert_equal "refused", schedule.failure.reason
    end
  end

  def test_deleting_the_file_makes_it_due
    with_store do |store|
      schedule = Schedule.new(order("a.example"), store)
      schedule.failed(problem)
      store.folder.delete(*store.failure(order("a.example")))

      assert_predicate schedule, :due?
      assert_nil schedule.failure
    end
  end

  def test_success_forgets_the_failures
    with_store do |store|
      schedule = Schedule.new(order("a.example"), store)
      schedule.failed(problem)
      put(store, pem("a.example"))
      schedule.succeeded

      refute_predicate schedule, :due?
      assert_nil Schedule.new(order("a.example"), store).failure
    end
  end

  def test_it_can_be_put_off_for_another_process
    with_store do |store|
      schedule = Schedule.new(order("a.example"), store)
      schedule.put_off

      refute_predicate schedule, :due?
      assert schedule.due?(Time.now + Schedule::BUSY_PAUSE + 1)
    end
  end

  private

  def with_store
    in_folder { |folder| yield Fairlead::Acme::Store.new(folder) }
  end

  def put(store, text) = store.folder.write(*store.certificate(order("a.example")), text)

  def problem = Fairlead::Acme::Problem.new("unauthorized", "refused")
end
