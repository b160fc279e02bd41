# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "support/acme_orders"

class AcmeKeptTest < Minitest::Test
  include Fairlead::Test::AcmeOrders
  include Fairlead::Test::Folders

  Log = Struct.new(:lines) do
    def acme_state_unusable(text) = lines << text
  end

  def test_facts_come_when_the_files_are_in_another_state
    with_kept do |kept, store|
      first, text = kept.facts(nil)

      assert_equal [nil, nil, false, false, nil], [*first.values_at(:certificate, :failure, :forgiven, :account), text]
      assert_nil kept.facts(first[:token])
      put(store, bundle = pem("a.example"))
      second, text = kept.facts(first[:token])

      assert_equal bundle, text
      assert_nil kept.facts(second[:token])
      store.folder.write(*store.account(order("a.example")), "{}")

      assert kept.facts(second[:token]).first[:account]
    end
  end

  def test_the_facts_of_a_certificate_are_its_times_in_milliseconds
    begins = Time.at(1_800_000_000)
    with_kept do |kept, store|
      put(store, pem("a.example", begins: begins, ends: begins + 300, serial: 0))
      certificate = kept.facts(nil).first[:certificate]

      assert_equal({ begins_at: 1_800_000_000_000, expires_at: 1_800_000_300_000, renew_at: 1_800_000_200_000, fraction: 0.0, identifier: nil },
                   certificate)
    end
  end

  def test_a_certificate_for_other_hosts_is_none
    with_kept do |kept, store|
      put(store, pem("b.example"))

      assert_nil kept.facts(nil).first[:certificate]
    end
  end

  # The format of the file is the same as in earlier versions.
  def test_a_failure_is_kept_until_it_is_forgotten
    with_kept do |kept, store|
      assert_nil kept.fail(count: 2, reason: "refused", retry_at: 4_102_444_800_123 - (73 * 365 * 86_400_000))
      values = JSON.parse(store.folder.read(*store.failure(order("a.example"))))

      assert_equal %w[order hosts count reason retry_at], values.keys
      assert_equal [2, "refused", "2027-01-19T00:00:00.123Z"], values.values_at("count", "reason", "retry_at")
      facts = kept.facts(nil).first

      assert_equal [2, "refused"], facts[:failure].values_at(:count, :reason)
      refute facts[:forgiven]
      kept.forget

      assert_equal [nil, true], kept.facts(nil).first.values_at(:failure, :forgiven)
    end
  end

  def test_the_time_of_the_next_attempt_stays_the_same
    with_kept do |kept, _|
      retry_at = ((Time.now.to_r + 60) * 1000).floor
      kept.fail(count: 1, reason: "refused", retry_at: retry_at)

      assert_equal retry_at, kept.facts(nil).first[:failure][:retry_at]
    end
  end

  def test_a_failure_that_cannot_be_deleted_does_not_count
    with_kept do |kept, store|
      block(store.failure(order("a.example")), store)
      kept.forget

      assert_equal [nil, true], kept.facts(nil, forgotten: true).first.values_at(:failure, :forgiven)
    end
  end

  def test_a_failure_that_cannot_be_written_has_a_reason
    with_kept do |kept, store|
      block(store.failure(order("a.example")), store)

      assert_match(/directory/i, kept.fail(count: 1, reason: "refused", retry_at: 0))
    end
  end

  def test_a_folder_that_is_gone_forgives_nothing
    with_kept do |kept, store|
      kept.fail(count: 1, reason: "refused", retry_at: 0)
      FileUtils.rm_rf(File.dirname(store.path_of(order("a.example"))))

      refute kept.facts(nil).first[:forgiven]
    end
  end

  DAMAGES = [->(path) { File.unlink(path) }, ->(path) { File.write(path, "") }, ->(path) { File.write(path, File.read(path)[0, 300]) },
             ->(path) { File.unlink(path) && File.mkfifo(path) }, ->(path) { FileUtils.rm_rf(File.dirname(path, 2)) }].freeze

  def test_a_certificate_whose_file_is_missing_or_damaged_is_written_again
    DAMAGES.each do |damage|
      with_kept do |kept, store|
        put(store, text = pem("a.example"))
        damage.call(path = store.path_of(order("a.example")))

        assert_nil kept.facts(nil).first[:certificate]
        assert_equal "written", kept.restore(text)
        assert_equal text, File.read(path)
      end
    end
  end

  def test_a_file_that_is_back_is_not_written_again
    with_kept do |kept, store|
      put(store, other = pem("a.example"))

      assert_equal "found", kept.restore(pem("a.example"))
      assert_equal other, File.read(store.path_of(order("a.example")))
    end
  end

  def test_nothing_is_written_while_another_process_orders
    with_kept do |kept, store|
      assert_equal "locked", store.exclusively_for(["a.example"]) { kept.restore(pem("a.example")) }
      refute_path_exists store.path_of(order("a.example"))
    end
  end

  def test_a_file_that_cannot_be_written_again_has_a_reason
    with_kept do |kept, store|
      block(store.certificate(order("a.example")), store)

      assert_match(/directory/i, kept.restore(pem("a.example"))[:failed])
    end
  end

  def test_state_that_cannot_be_used_is_none_and_is_told_once
    damages = { certificate: ["", "x", pem("a.example")[0, 300], nil], failure: ["", "[1", "\xff".b, nil] }
    damages.each do |kind, texts|
      texts.each do |text|
        with_kept do |kept, store, lines|
          name = store.public_send(kind, order("a.example"))
          text ? store.folder.write(*name, text) : block(name, store)
          facts = kept.facts(nil).first
          kept.facts(facts[:token])

          assert_equal [nil, nil], facts.values_at(:certificate, :failure)
          assert_equal 1, lines.size, "#{kind}: #{text.inspect}"
          assert_includes lines.first, store.folder.join(*name)
        end
      end
    end
  end

  private

  def with_kept
    in_folder do |folder|
      store = Fairlead::Acme::Store.new(folder)
      yield Fairlead::Acme::Kept.new(order("a.example"), store, log: Log.new(lines = [])), store, lines
    end
  end

  # Makes a folder where a file should be.
  def block(name, store) = FileUtils.mkdir_p(store.folder.join(*name))

  def put(store, text) = store.folder.write(*store.certificate(order("a.example")), text)
end
