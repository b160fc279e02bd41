# frozen_string_literal: true

module Fairlead
  # Loads the files of this library that a process may need later, to serve or to end. By then they may be gone, for example after `bundle
  # clean`, or the process may have no descriptor left to open them. Copies of the process share them.
  module EagerLoad
    # Modules for the start and for tools. Their parts that are not loaded yet are not needed later.
    OF_START = %w[CLI Configuration Control::Tool EmbeddedSupervisor FirstStart Launcher LoadTool Migrate Preflight Unsupported].freeze

    # Modules that are in use if they are loaded. Then their parts may be needed, too.
    ON_DEMAND = %w[
      Acme Cable Group Handler Integrations PubSub::Broker PubSub::NATS PubSub::Postgres PubSub::Redis PubSub::RunningServer PublishSocket Server
      Tls::DevelopmentAuthority Tls::DevelopmentCertificate Tracing
    ].freeze

    class << self
      # Returns the names of the constants that stay to be loaded. +path+: the name of +namespace+, with colons.
      def run(namespace = Fairlead, path = "")
        namespace.constants(false).flat_map { |name| load(namespace, name, "#{path}#{name}") }
      end

      private

      def load(namespace, name, path)
        waits = namespace.autoload?(name, false)
        return [*(path if waits)] if OF_START.include?(path) || (waits && ON_DEMAND.include?(path))

        value = namespace.const_get(name, false)
        value.is_a?(Module) && value.name == "Fairlead::#{path}" ? run(value, "#{path}::") : []
      rescue LoadError, NameError # the part is for another library, which is not there
        [path]
      end
    end
  end
end
