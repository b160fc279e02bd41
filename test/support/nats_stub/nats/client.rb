# frozen_string_literal: true

# The constants of the gem nats-pure that Fairlead::PubSub::NATS needs to be loaded, for unit tests where the gem is missing.
module NATS
  class Client; end

  module IO
    class SlowConsumer < StandardError; end
  end
end
