# frozen_string_literal: true

# Responses in pieces.
class StreamsController < ApplicationController
  include ActionController::Live

  # Sends each event but the first once a file exists, which the client makes when it has got the previous one.
  def live
    response.headers["Content-Type"] = "text/event-stream"
    response.headers["Last-Modified"] = Time.now.httpdate # otherwise Rack::ETag collects the body first
    events = ActionController::Live::SSE.new(response.stream)
    3.times do |number|
      sleep(0.01) until number.zero? || Rails.root.join("tmp/seen#{number - 1}").exist?
      events.write({ number: number }, event: "step")
    end
  ensure
    response.stream.close
  end
end
