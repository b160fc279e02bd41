# frozen_string_literal: true

require "test_helper"

# The start of a process beside a supervisor of another version. These messages are frozen, so the test compares bytes.
class JoiningTest < Minitest::Test
  Joining = Fairlead::Joining
  Link = Fairlead::Link

  PROGRAM = Fairlead::NativeProgram.find("fairlead/fairlead-supervisor", "the supervisor")

  def setup
    @supervisor, socket = UNIXSocket.pair(Socket::SOCK_SEQPACKET)
    @link = Link.new(socket)
  end

  def teardown
    [@supervisor, @link].each { |io| io.close unless io.closed? }
  end

  def test_a_supervisor_of_another_version_learns_which_program_can_supervise
    tell("inherit", "7", "999", "another layout", "hot", Process.pid, "", "", "a field of a later version")
    tell("kept_end")
    joining = Joining.new(@link)

    assert_equal ["7", :hot], [joining.number, joining.kind]
    expected = ["other_version", Fairlead::VERSION, Fairlead::SupervisorSettings::PROTOCOL, Fairlead::Native::Shared::LAYOUT, PROGRAM]

    assert_equal expected.join("\0").b, @supervisor.recv(10_000)
    assert_equal Fairlead::Native::Shared::DESCRIPTORS, joining.shared_descriptors.size
  end

  def test_a_process_in_the_place_of_a_lost_one_must_have_the_same_version
    tell("inherit", "7", "999", "another layout", "replacement", Process.pid, "", "")
    error = assert_raises(Fairlead::Error) { Joining.new(@link) }

    assert_match(/is incompatible with the running version; use a hot restart/, error.message)
  end

  def test_a_supervisor_of_the_same_version_shares_its_memory
    shared = Fairlead::Native::Shared.new(2, 0, 0)
    ios = shared.descriptors.map { |number| IO.for_fd(number, autoclose: false) }
    inherit = ["inherit", "7", Fairlead::SupervisorSettings::PROTOCOL, Fairlead::Native::Shared::LAYOUT, "phased", Process.pid, "", ""]
    @supervisor.sendmsg(inherit.join("\0"), 0, nil, Socket::AncillaryData.unix_rights(*ios))
    tell("kept_end")

    assert_empty Joining.new(@link).shared_descriptors
    assert_equal :wait_readable, @supervisor.recv_nonblock(1, exception: false)
  end

  private

  def tell(*words) = @supervisor.send(words.join("\0"), 0)
end
