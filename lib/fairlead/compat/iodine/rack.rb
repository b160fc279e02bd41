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
        HANDLER.run(app, **defaults, **Iodine.send(:process_options), **options.to_h, &block)
      end

      def shutdown = HANDLER.shutdown

      # What Iodine.start serves without an Iodine.listen; nil if nothing has been set here.
      def service
        ListenOptions.new({ public: public, port: port, address: address }.compact, app) if app || public
      end
    end
  end
end
