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

    # The folder of the files, with the name by which Ruby knows it.
    FOLDER = File.dirname(__FILE__, 2)

    # RubyGems looks for a gem with each file. After Rails is loaded, that takes longer than to load the file.
    REQUIRE = Kernel.private_method_defined?(:gem_original_require) ? :gem_original_require : :require

    class << self
      # Returns the names of the constants that stay to be loaded.
      def run = Collections.without { load_all(Fairlead, "") }

      private

      # +path+: the name of +namespace+, with colons.
      def load_all(namespace, path)
        namespace.constants(false).flat_map { |name| load(namespace, name, "#{path}#{name}") }
      end

      def load(namespace, name, path)
        file = namespace.autoload?(name, false)
        return [*(path if file)] if OF_START.include?(path) || (file && ON_DEMAND.include?(path))

        own = File.join(FOLDER, "#{file}.rb") # the file of a plugin is elsewhere
        send(REQUIRE, own) if file && File.file?(own)
        value = namespace.const_get(name, false)
        value.is_a?(Module) && value.name == "Fairlead::#{path}" ? load_all(value, "#{path}::") : []
      rescue LoadError, NameError # the part is for another library, which is not there
        [path]
      end
    end
  end
end
