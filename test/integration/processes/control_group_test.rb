# frozen_string_literal: true

require "test_helper"
require "json"
require "support/control"
require "support/cpu_group"

# A server in a control group, as in a container: its share of the processors, and its memory.
class ControlGroupTest < Minitest::Test
  include Fairlead::Test::Servers
  include Fairlead::Test::HttpClients
  include Fairlead::Test::Controlled

  APP = "run ->(env) { [200, {}, ['hello']] }"

  def test_half_a_processor_is_one_worker_and_told_in_the_log
    found = Fairlead::Test::CpuGroup.with(0.5) do |file|
      server = serve(APP, files: { "config/fairlead.rb" => "File.write(#{file.dump}, Process.pid.to_s)\nworkers :auto\n" })
      line = server.wait_for_output(/ready in .*/)[0]
      server.stop
      line
    end
    skip("the system lets this user create no control group for processors") unless found

    assert_match(/\Aready in cluster mode \(.*, 1 worker, 0:5 threads each, CPU quota 0\.5, development\)/, found)
  end

  def test_the_memory_of_the_group_is_in_the_statistics
    server = serve(APP, *FLAGS)
    stats = json(server, "stats")
    skip("the system counts no memory of control groups") unless stats["cgroup"]

    assert_operator stats.dig("cgroup", "memory_bytes"), :>, 1 << 20
    assert_includes stats["cgroup"], "memory_max_bytes"
    assert_match(/^cgroup\.memory_bytes +\d+$/, ctl("-S", server.path(STATE), "stats")[1])
    assert_match(/^memory of the control group: \d+ MiB/, ctl("-S", server.path(STATE), "status")[1])
    assert_match(/^fairlead_cgroup_memory_bytes \d+/, command(server, "metrics").body)
  end
end
