# frozen_string_literal: true

require "test_helper"

class TlsOwnKeysTest < Minitest::Test
  OwnKeys = Fairlead::Tls::OwnKeys

  def test_the_next_program_goes_on_with_them
    keys = OwnKeys.take({})
    variables, io = OwnKeys.hand_over(keys)
    copy = io.dup
    copy.autoclose = false
    environment = { OwnKeys::VARIABLE => copy.fileno.to_s }
    adopted = OwnKeys.take(environment)

    assert_equal({ OwnKeys::VARIABLE => keys.fileno.to_s }, variables)
    assert_empty environment
    assert_equal File.stat("/proc/self/fd/#{keys.fileno}").ino, File.stat("/proc/self/fd/#{adopted.fileno}").ino
    refute_equal keys.fileno, adopted.fileno
  end

  def test_those_of_another_version_are_left
    File.open(File::NULL) do |file|
      copy = file.dup
      copy.autoclose = false
      assert_instance_of Fairlead::Native::TicketKeys, OwnKeys.take({ OwnKeys::VARIABLE => copy.fileno.to_s })
    end
  end

  def test_without_any_nothing_is_handed_over
    assert_equal [{}], OwnKeys.hand_over(nil)
  end
end
