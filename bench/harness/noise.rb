# frozen_string_literal: true

module Bench
  # Steal time: CPU time that the host of a virtual machine gave to others, which disturbs a measurement and is not
  # visible inside otherwise. Known on Linux only.
  module Noise
    # Share of CPU time above which a measurement says more about the host than about the server.
    TOLERABLE = 0.03

    module_function

    # The block's value, and the share of CPU time stolen during the block (0.0 if unknown).
    def during
      before = times
      value = yield
      after = times
      [value, share(before, after)]
    end

    # [stolen, all] CPU time so far in ticks, or nil.
    def times
      all = File.foreach("/proc/stat").first.split.drop(1).map(&:to_i)
      [all[7], all.first(8).sum]
    rescue Errno::ENOENT
      nil
    end

    def share(before, after)
      return 0.0 unless before && after && after.last > before.last

      (after.first - before.first).fdiv(after.last - before.last)
    end
    private_class_method :times, :share
  end
end
