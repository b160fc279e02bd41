# frozen_string_literal: true

require "fileutils"
require_relative "pausing"

module Fairlead
  module Test
    # A broker in one process, `@pid`, with its files in `@folder`. It can be ended and started again.
    module BrokerProcess
      include Pausing

      def self.installed?(program)
        ENV["PATH"].split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.join(folder, program)) }
      end

      # Ends it abruptly.
      def kill
        return unless @pid

        Process.kill(:KILL, @pid)
        Process.wait(@pid)
        @pid = nil
      end

      # Stops and continues the process.
      def pause = pause_processes([@pid])
      def resume = resume_processes([@pid])

      def destroy
        kill
        FileUtils.rm_rf(@folder)
      end
    end
  end
end
