# frozen_string_literal: true

module Fairlead
  class Supervisor
    # Asks all workers for the backtraces of their threads. Each gets the end of a pipe and writes there what Backtraces knows, as
    # JSON. One that hangs does not answer, which is an answer too.
    class Survey
      # How long the answers may take, in seconds.
      PATIENCE = 3

      # +children+: the workers, as Child.
      def initialize(children)
        @children = children
      end

      # Returns a Hash for each worker: { worker:, pid:, threads: what Backtraces.all returns, or nil without an answer }.
      def take
        require "json"
        pipes = @children.filter_map { |child| ask(child) }.to_h
        answers = read(pipes.values)
        pipes.map { |child, pipe| { worker: child.index, pid: child.pid, threads: parse(answers[pipe]) } }
      ensure
        pipes&.each_value(&:close)
      end

      private

      def ask(child)
        reader, writer = IO.pipe
        child.link.send(:backtraces, ios: [writer])
        [child, reader]
      ensure
        writer&.close
      end

      # pipe => what has come from those that were closed in time.
      def read(pipes)
        texts = pipes.to_h { |pipe| [pipe, +""] }
        complete = {}
        deadline = now + PATIENCE
        until complete.size == pipes.size
          readable, = IO.select(pipes - complete.keys, nil, nil, [deadline - now, 0].max)
          return complete unless readable

          readable.each { |pipe| complete[pipe] = texts[pipe] unless receive(pipe, texts[pipe]) }
        end
        complete
      end

      # Returns false at the end.
      def receive(pipe, text)
        part = pipe.read_nonblock(64 * 1024, exception: false)
        text << part if part.is_a?(String)
        !part.nil?
      end

      def parse(text)
        JSON.parse(text, symbolize_names: true) unless text.to_s.empty?
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
