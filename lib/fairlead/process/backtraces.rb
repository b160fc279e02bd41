# frozen_string_literal: true

module Fairlead
  # The backtrace of every thread of a process, with the request that it serves.
  module Backtraces
    # The most lines of a thread that are of use.
    LONGEST = 100

    class << self
      # Writes them to +log+, a message for each thread.
      def print(log) = all.each { |thread| log.backtrace(thread) }

      # Returns a Hash for each thread: { name:, status:, request: "GET /path" or nil, backtrace: [line, …] }.
      def all
        requests = requests_by_thread
        Thread.list.map do |thread|
          { name: name_of(thread), status: thread.status.to_s, request: requests[thread], backtrace: (thread.backtrace || []).first(LONGEST) }
        end
      end

      private

      def name_of(thread) = thread.name || (thread == Thread.main ? "main" : thread.inspect[/0x\h+/])

      def requests_by_thread
        Native.current_requests.to_h.transform_values { |env| "#{env["REQUEST_METHOD"]} #{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}" }
      end
    end
  end
end
