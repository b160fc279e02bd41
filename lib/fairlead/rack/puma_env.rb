# frozen_string_literal: true

module Fairlead
  # Rack middleware that completes what the engine adds to the env for the option puma_env, in the form of newer versions of
  # Puma: the time the body was waited for is a Float, and there is something to call for a request that is going to wait.
  # That has nothing to do here, as each request keeps its thread.
  class PumaEnv
    BODY_WAIT = "puma.request_body_wait"
    MARK_AS_IO_BOUND = "puma.mark_as_io_bound"
    NOTHING = -> {}

    def initialize(app)
      @app = app
    end

    def call(env)
      env[BODY_WAIT] = env[BODY_WAIT].to_f
      env[MARK_AS_IO_BOUND] = NOTHING
      @app.call(env)
    end
  end
end
