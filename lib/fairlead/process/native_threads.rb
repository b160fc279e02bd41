# frozen_string_literal: true

require "etc"

module Fairlead
  # What the kernel tells of the threads of a process: for a worker that answers nothing itself any more.
  module NativeThreads
    # "ruby in futex_do_wait, fairlead 1 running (61.2 s), fairlead log in poll_schedule_timeout": each thread, the kernel's
    # function it sleeps in, where that may be read, and the processor time it has used. Empty where the system does not tell.
    def self.describe(pid)
      Dir.glob("/proc/#{pid}/task/[0-9]*").sort_by { |task| Integer(File.basename(task)) }.filter_map { |task| one(task) }.join(", ")
    end

    # One thread; nil if it has ended.
    def self.one(task)
      name, fields = File.read(File.join(task, "stat")).match(/\((.*)\) (.*)/m).captures
      state, *fields = fields.split
      seconds = fields.values_at(10, 11).sum { |ticks| Float(ticks) } / Etc.sysconf(Etc::SC_CLK_TCK)
      "#{name} #{where(task, state)}#{format(" (%.1f s)", seconds) if seconds >= 0.1}"
    rescue SystemCallError
      nil
    end

    def self.where(task, state)
      case state
      when "R" then "running"
      when "T", "t" then "stopped"
      when "Z", "X" then "ended"
      else
        function = File.read(File.join(task, "wchan"))
        function.match?(/[a-z]/) ? "in #{function[/\w+/]}" : "asleep"
      end
    end

    private_class_method :one, :where
  end
end
