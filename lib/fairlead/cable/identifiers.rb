# frozen_string_literal: true

module Fairlead
  module Cable
    module Sockets
      # For ActionCable::Channel::Base: the identifiers of a native connection as methods of its channels. Rails defines them for
      # each channel object: its singleton class takes more memory than everything else. Here the channel's class has them.
      module Identifiers
        # The methods for some identifiers. They come before the methods of the channel class, as Rails' ones do.
        class Methods < Module
          def initialize(identifiers)
            super()
            identifiers.each do |name|
              define_method(name) { connection.identifiers.include?(name) ? connection.send(name) : super() }
            end
          end
        end

        # For the class: identifiers are no actions.
        module Actions
          def action_methods
            all = super
            return @own_actions if @all_actions.equal?(all)

            @own_actions = all - ancestors.grep(Methods).flat_map { |methods| methods.instance_methods(false).map(&:to_s) }
            @all_actions = all
            @own_actions
          end

          # Adds the methods for identifiers that are new to this class.
          def know_identifiers(identifiers)
            return if @identifiers.equal?(identifiers)

            LOCK.synchronize do
              added = identifiers.to_a - (@known_identifiers || [])
              prepend(Methods.new(added)) if added.any?
              @known_identifiers = [*@known_identifiers, *added]
              @identifiers = identifiers
            end
          end
        end

        LOCK = Mutex.new
        private_constant :LOCK

        def self.prepended(base)
          super
          base.singleton_class.prepend(Actions)
        end

        private

        def delegate_connection_identifiers
          Socket.of(connection) ? self.class.know_identifiers(connection.identifiers) : super
        end
      end
    end
  end
end
