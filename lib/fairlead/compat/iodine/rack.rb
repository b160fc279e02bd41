# frozen_string_literal: true

module Iodine
  # The Rack handler, `Iodine::Rack.run(app, Port: 3000)`, and the settings that iodine had here before 0.5.
  module Rack
    HANDLER = Object.new.extend(Fairlead::Handler)
    private_constant :HANDLER

    class << self
      attr_accessor :app, :public, :port, :address

      # Serves until the server is asked to end. Yields the server, which has a #stop.
      def run(app, options = {}, &block)
        defaults = { Port: port || DEFAULT_SETTINGS[:port], Host: address, public_dir: public }.compact
        given = { **defaults, **Iodine.send(:process_options), **options.to_h }
        HANDLER.run(app, **given, **secured(given), &block)
      end

      def shutdown = HANDLER.shutdown

      # The service of Iodine.start without an Iodine.listen; nil if nothing has been set here.
      def service
        ListenOptions.new({ public: public, port: port, address: address }.compact, app) if app || public
      end

      private

      # Iodine.listen has TLS if the defaults have it; so has this.
      def secured(options)
        tls = DEFAULT_SETTINGS[:tls]
        tls ? { Host: ListenOptions.new({ tls: tls, address: options[:Host], port: options[:Port] }, nil).bind } : {}
      end
    end
  end
end
