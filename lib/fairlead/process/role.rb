# frozen_string_literal: true

module Fairlead
  # The role of a process: a Spawner or a Worker. A role may turn into the other one: a worker is forked from a spawner, and for
  # a refork a worker becomes a spawner. The new role starts on the same stack frame as the old one, so the stack, and the
  # objects that it keeps alive, do not grow.
  module Role
    # Runs +role+ and each role that it turns into; returns the exit status.
    def self.run(role)
      loop { role = catch(:become) { return role.run } }
    end

    # Ends this role and begins +role+.
    def become(role) = throw(:become, role)
  end
end
