# frozen_string_literal: true

module Fairlead
  # What a process is: a Spawner or a Worker. It may become the other one: a worker is forked from a spawner, and for a refork a
  # worker turns into a spawner. The new role starts where the old one has started, so the stack, and what it keeps alive, does
  # not grow from one to the next.
  module Role
    # Runs +role+, and whatever it becomes; returns the exit status.
    def self.run(role)
      loop { role = catch(:become) { return role.run } }
    end

    # Ends this role and begins +role+.
    def become(role) = throw(:become, role)
  end
end
