# frozen_string_literal: true

module Fairlead
  module Integrations
    # Prepended to Rack::Server and Rackup::Server, which remove the pid file when a process ends. Without this, every forked
    # process would remove it, too.
    module RackServer
      # +namespace+: Rack or Rackup. If it has no Server yet, none is starting a server.
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
