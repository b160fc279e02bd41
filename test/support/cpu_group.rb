# frozen_string_literal: true

require "fileutils"

module Fairlead
  module Test
    # A control group of the kernel with a part of a processor, for the processes that a test moves into it. Needs root, and a system that
    # lets root create such groups.
    class CpuGroup
      PERIOD = 100_000
      ROOT = "/sys/fs/cgroup"

      # Yields the path of the file that takes process ids; removes the group afterwards, when these processes have ended. Returns nil
      # without yielding if there can be no group.
      def self.with(processors)
        group = new(processors)
        return unless group.create

        begin
          yield group.file
        ensure
          group.remove
        end
      end

      def initialize(processors)
        @quota = (processors * PERIOD).to_i
        @unified = File.exist?("#{ROOT}/cgroup.controllers")
        @folder = File.join(ROOT, *("cpu" unless @unified), "fairlead-test-#{Process.pid}")
      end

      def file = File.join(@folder, "cgroup.procs")

      # True if the group is there.
      def create
        Dir.mkdir(@folder)
        @unified ? File.write(File.join(@folder, "cpu.max"), "#{@quota} #{PERIOD}") : write_separately
        true
      rescue SystemCallError
        remove if File.directory?(@folder)
        false
      end

      def remove
        Dir.rmdir(@folder)
      rescue SystemCallError => e
        warn("#{@folder} is left: #{e.message}")
      end

      private

      def write_separately
        File.write(File.join(@folder, "cpu.cfs_period_us"), PERIOD.to_s)
        File.write(File.join(@folder, "cpu.cfs_quota_us"), @quota.to_s)
      end
    end
  end
end
