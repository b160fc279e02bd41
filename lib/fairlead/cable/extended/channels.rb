# frozen_string_literal: true

module Fairlead
  module Cable
    module Extended
      # For ActionCable::Channel::Base: the streams to which clients may whisper.
      module Channels
        # @return [String, nil] the broadcasting to which the client may whisper
        attr_reader :whisper_stream

        def stream_from(broadcasting, callback = nil, whisper: false, **options, &block)
          whispers_to(broadcasting) if whisper
          super(broadcasting, callback, **options, &block)
        end

        def stream_for(model, callback = nil, whisper: false, **options, &block)
          whispers_to(broadcasting_for(model)) if whisper
          super(model, callback, **options, &block)
        end

        # Lets the client whisper to the other clients of a stream.
        #
        # @param broadcasting [String, Symbol]
        def whispers_to(broadcasting)
          @whisper_stream = String(broadcasting)
        end
      end
    end
  end
end
