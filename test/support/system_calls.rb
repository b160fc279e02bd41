# frozen_string_literal: true

require_relative "waiting"

module Fairlead
  module Test
    # Watches, with strace, the system calls of a process that take a file name.
    class SystemCalls
      include Waiting

      # strace is missing, or may not attach itself.
      class Unavailable < StandardError; end

      # Attaches to +pid+ and all of its threads; +log+ is the path of a file to write to.
      def initialize(pid, log)
        @log = log
        @errors = "#{log}.errors"
        @strace = Process.spawn("strace", "-f", "-q", "-p", pid.to_s, "-e", "trace=%file", "-o", log, out: File::NULL, err: @errors)
        wait_until("strace to attach") { traced?(pid) || Process.wait(@strace, Process::WNOHANG) }
        raise Unavailable, File.read(@errors) unless traced?(pid)
      rescue Errno::ENOENT
        raise Unavailable, "strace is not installed"
      end

      # Returns the calls so far, one per line, without the ones about an open file ("").
      def lines = File.exist?(@log) ? File.readlines(@log, chomp: true).grep(/\A\d+ +\w+\(/).grep_v(/statx\(\d+, ""/) : []

      # Waits until a call names +text+, and returns the calls before it.
      def before(text)
        wait_until("a call with #{text}") { lines.index { |line| line.include?(text) } }
        lines.take_while { |line| !line.include?(text) }
      end

      # Detaches from the process.
      def stop
        Process.kill(:INT, @strace)
        Process.wait(@strace)
      rescue Errno::ESRCH, Errno::ECHILD
        nil
      end

      private

      # Returns true if strace traces every thread of the process.
      def traced?(pid)
        tracers = Dir.glob("/proc/#{pid}/task/*/status").map { |path| File.read(path)[/^TracerPid:\t(\d+)/, 1] }
        tracers.all?(@strace.to_s)
      rescue Errno::ENOENT, Errno::ESRCH
        false
      end
    end
  end
end
