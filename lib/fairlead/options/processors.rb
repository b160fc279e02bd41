# frozen_string_literal: true

require "etc"

module Fairlead
  module Options
    # The number of processors that this process may use: limited by its affinity and by the quota of its control group (a
    # container's limit).
    module Processors
      ROOT = "/sys/fs/cgroup"
      GROUPS = "/proc/self/cgroup"

      class << self
        # At least 1; half a processor of a quota does not count.
        def available(all: Etc.nprocessors, root: ROOT, groups: GROUPS)
          [all, quota(root: root, groups: groups)].compact.min.floor.clamp(1, nil)
        end

        # The smallest quota of the group and the groups around it, in processors; nil if there is none.
        def quota(root: ROOT, groups: GROUPS)
          paths = File.binread(groups) # names have any bytes
          unified = folders(root, paths[/^0::(.*)$/, 1]).map { |folder| unified(folder) }
          separate = folders(File.join(root, "cpu"), paths[/^\d+:(?:[^:\n]*,)?cpu(?:,[^:\n]*)?:(.*)$/, 1]).map { |folder| separate(folder) }
          [*unified, *separate].compact.min
        rescue SystemCallError
          nil
        end

        private

        # The top, and each folder of a path below it. A container may see its own group at the top, although the path is the host's.
        def folders(top, path)
          path.to_s.split("/").reject(&:empty?).reduce([top]) { |all, name| [*all, File.join(all.last, name)] }
        end

        # The second version of control groups: "200000 100000", or "max 100000".
        def unified(folder)
          ratio(*File.read(File.join(folder, "cpu.max")).split)
        rescue SystemCallError
          nil
        end

        # The first version; -1 means no quota.
        def separate(folder)
          ratio(*%w[quota period].map { |name| File.read(File.join(folder, "cpu.cfs_#{name}_us")).strip })
        rescue SystemCallError
          nil
        end

        def ratio(quota = nil, period = nil, *)
          quota, period = [quota, period].map { |text| Float(text, exception: false) }
          quota / period if quota&.positive? && period&.positive?
        end
      end
    end
  end
end
