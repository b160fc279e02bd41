# frozen_string_literal: true

require "test_helper"
require "support/acme_orders"

class AcmeStoreTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  def test_orders_that_share_a_host_exclude_each_other_and_others_do_not
    with_store do |store|
      store.exclusively_for(%w[b.example a.example]) do
        refute(store.exclusively_for(%w[c.example b.example]) { flunk })
        assert_equal :free, store.exclusively_for(%w[c.example d.example]) { :free }
      end
      assert_equal :free, store.exclusively_for(%w[c.example b.example]) { :free }
    end
  end

  def test_a_folder_that_takes_nothing_is_found_before_an_authority_is_asked
    with_store do |store|
      store.check_room(order("a.example"))

      assert_empty store.folder.names(*store.certificate(order("a.example"))[0..-2])
      store.folder.write("challenges", "x", "")
      File.chmod(0o722, store.challenges)
      assert_raises(SystemCallError) { store.check_room(order("a.example")) }
    end
  end

  def test_what_killed_processes_have_left_goes_and_what_others_need_stays
    with_store do |store|
      old, new = %w[old new].map { |token| store.folder.write(*store.answer("http-01", token), "x") }
      File.utime(Time.now - 7200, Time.now - 7200, old)
      key = store.folder.write("authority", "account.pem.0123456789abcdef~", "key")
      File.utime(Time.now - 7200, Time.now - 7200, key)
      store.prepare

      assert_equal [false, true, false], [old, new, key].map { |path| File.exist?(path) }
    end
  end

  private

  def with_store
    in_folder { |folder| yield Fairlead::Acme::Store.new(folder) }
  end
end
