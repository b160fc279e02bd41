# frozen_string_literal: true

module Fairlead
  class WarmUp
    # The health check that new applications have since Rails 7.1.
    module HealthCheck
      ROUTE = :rails_health_check

      class << self
        # Its path, or nil.
        def path
          routes = application&.routes
          routes.url_helpers.public_send(:"#{ROUTE}_path") if routes&.named_routes&.key?(ROUTE)
        rescue StandardError
          nil # routes that need parameters
        end

        # A host that the application permits, or nil.
        def host
          hosts = application&.config
          hosts.hosts.grep(String).first&.delete_prefix(".") if hosts.respond_to?(:hosts)
        end

        private

        def application = defined?(::Rails) && ::Rails.respond_to?(:application) ? ::Rails.application : nil
      end
    end
  end
end
