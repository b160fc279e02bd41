# frozen_string_literal: true

module Fairlead
  # The backtrace of every thread of a process, with the request that it serves. The application has chosen the names of threads and may
  # have changed the request: they can have any bytes.
  module Backtraces
    # Number of useful lines of a backtrace.
    LONGEST = 100

    class << self
      # Writes the backtraces to +log+, a message for each thread.
      def print(log) = all.each { |thread| log.backtrace(thread) }

      # Writes +values+ as JSON to a pipe and closes it, on a thread, because the reader may be slow.
      def write(values, pipe)
        require "json"
        text = JSON.generate(values)
        Thread.new { put(text, pipe) }
      rescue ThreadError
        pipe.close # there is no room for a thread, so the question gets no answer
      end

      # The backtraces of this process, in Puma's format.
      def in_form_of_puma
        Thread.list.map do |thread|
          { name: "Thread: #{SystemText.in_line(thread.name || "TID-#{thread.object_id.to_s(36)}")}", backtrace: lines(thread.backtrace) }
        end
      end

      # Returns a Hash for each thread: { name:, thread: id of the kernel, status:, request: "GET /path" or nil, backtrace: [line, …] }.
      def all
        requests = requests_by_thread
        Thread.list.map do |thread|
          { name: name_of(thread), thread: thread.native_thread_id, status: thread.status.to_s, request: requests[thread],
            backtrace: lines((thread.backtrace || []).first(LONGEST)) }
        end
      end

      # The lines of a backtrace, which is nil for a thread that has ended.
      def lines(backtrace) = backtrace&.map { |line| SystemText.in_line(line) }

      # Method and path of a request.
      def request(env) = SystemText.in_line("#{env["REQUEST_METHOD"].to_s.b} #{env["SCRIPT_NAME"].to_s.b}#{env["PATH_INFO"].to_s.b}")

      private

      def put(text, pipe)
        pipe.sync = true # closing writes nothing more
        pipe.write(text)
      rescue SystemCallError
        nil # nobody waits for the answer any more
      ensure
        pipe.close
      end

      def name_of(thread) = SystemText.in_line(thread.name || (thread == Thread.main ? "main" : thread.inspect[/0x\h+/]))

      def requests_by_thread = Native.current_requests.to_h.transform_values { |env| request(env) }
    end
  end
end
