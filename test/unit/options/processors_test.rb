# frozen_string_literal: true

require "test_helper"

class OptionsProcessorsTest < Minitest::Test
  include Fairlead::Test::Folders

  MANY = 64

  def test_without_a_quota_all_processors_count
    assert_equal MANY, available({})
    assert_equal MANY, available({ "cpu.max" => "max 100000\n" })
    assert_equal MANY, available({ "cpu/cpu.cfs_quota_us" => "-1\n", "cpu/cpu.cfs_period_us" => "100000\n" })
    in_folder { |folder| assert_equal Etc.nprocessors, Fairlead::Options::Processors.available(root: folder, groups: "none") }
  end

  def test_a_quota_counts_without_its_fraction
    assert_equal 2, available({ "cpu.max" => "250000 100000\n" })
    assert_equal 3, available({ "cpu/cpu.cfs_quota_us" => "300000\n", "cpu/cpu.cfs_period_us" => "100000\n" })
  end

  def test_the_first_version_has_a_path_of_its_own
    files = { "cpu/app/cpu.cfs_quota_us" => "150000\n", "cpu/app/cpu.cfs_period_us" => "100000\n" }

    assert_equal [1.5, nil], [quota(files, "5:cpu,cpuacct:/app\n0::/\n"), quota(files, "5:cpuacct:/app\n4:cpuset:/app\n0::/\n")]
  end

  def test_a_fraction_of_a_processor_is_one
    assert_equal 1, available({ "cpu.max" => "50000 100000\n" })
  end

  def test_the_smallest_quota_of_the_groups_around_counts
    files = { "cpu.max" => "max 100000", "app/cpu.max" => "400000 100000", "app/web/cpu.max" => "800000 100000" }

    assert_equal 4, available(files, group: "/app/web")
    assert_equal 4, available(files, group: "/app")
    assert_equal MANY, available(files)
  end

  # A log line contains the quota: nothing about it may keep the server from starting.
  def test_a_quota_that_cannot_be_read_is_none
    ["", "max\n", "max 100000 5\n", "x y", "-5 0"].each { |text| assert_equal MANY, available({ "cpu.max" => text }) }
    assert_nil quota({}, "12:cpu:/caf\xE9\n0::/caf\xE9\n".b)
  end

  def test_a_group_with_any_name
    assert_equal 0.5, quota({ "café/cpu.max" => "50000 100000" }, "0::/café\n")
  end

  def test_more_than_there_are_are_not_available
    assert_equal MANY, available({ "cpu.max" => "99999900000 100000" })
  end

  private

  def quota(files, lines)
    in_folder(files.merge("groups" => lines)) { |folder| Fairlead::Options::Processors.quota(root: folder, groups: "groups") }
  end

  def available(files, group: "/")
    in_folder(files.merge("groups" => "12:cpu:/elsewhere\n0::#{group}\n")) do |folder|
      Fairlead::Options::Processors.available(all: MANY, root: folder, groups: "groups")
    end
  end
end
