# frozen_string_literal: true

module Fairlead
  module Integrations
    # Put in front of Rack::Server and Rackup::Server, which remove the pid file when a process ends, and so would every process
    # that was forked from it.
    module RackServer
      # +namespace+: Rack or Rackup. Where that has no Server yet, none is starting anything.
      def self.install(namespace)
        namespace::Server.prepend(self) if namespace.const_defined?(:Server, false) && !namespace.autoload?(:Server)
      end

      private

      def at_exit(&block)
        started = Process.pid
        super { block.call if Process.pid == started }
      end
    end
  end
end
