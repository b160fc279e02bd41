# frozen_string_literal: true

module Fairlead
  class Configuration
    # The methods of a configuration file that are neither options nor hooks: Puma's ways to compose a file, and methods without
    # effect. They are methods of Script.
    module PumaMethods
      # `set_default_host` sets the host for `port`, and `default_host` returns it.
      def set_default_host(host) # rubocop:disable Naming/AccessorMethodName -- Puma's name
        @file.default_host = host.to_s
      end

      def default_host = @file.default_host || Binding.any_host

      # Forgets the addresses that the file has given so far.
      def clear_binds! = @file.forget(:bind)

      # The application itself, instead of a rackup file.
      def app(object = nil, &block)
        @file.app = object || block || @file.problem(:app, @file.here, "needs an application or a block")
      end

      # Reads another file, as if its text stood here.
      def load(path) = @file.load(path)

      # Runs a block with the methods of the file.
      def inject(&block) = instance_eval(&block)

      # The value that the file has set, by our name or Puma's.
      def get(name, default = nil) = @options.fetch(name, default)

      # Blocks for a server that is one process, and for one with workers. They run after the file has been read.
      def single(&block) = @file.mode_block(:single, block)
      def cluster(&block) = @file.mode_block(:cluster, block)

      # Parts of Puma that a file requires do not exist without Puma; all other files must exist.
      def require(path)
        super
      rescue ::LoadError
        raise unless path.to_s.match?(%r{\Apuma(?:/|\z)})

        @file.warning(:"require #{path}", "#{@file.here}: require \"#{path}\" has no effect: there is no such file, and Fairlead needs none of Puma")
        false
      end
    end

    # The methods without effect.
    module AcceptedMethods
      Accepted.each do |entry|
        define_method(entry.name) { |*arguments, **| @file.accept(entry, arguments) }
      end
    end
  end
end
