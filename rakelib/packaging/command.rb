# frozen_string_literal: true

require "open3"
require_relative "platform"

module Packaging
  # Other programs: their output, or their failure as Impossible.
  module Command
    module_function

    # Both outputs of a program that succeeds.
    def output(*command, **options)
      output, status = Open3.capture2e(*command, **options)
      status.success? ? output : raise(Impossible, "#{words(command)}: #{status}\n#{output}")
    rescue Errno::ENOENT
      raise Impossible, "#{words(command)}: there is no such program"
    end

    # Shows the output.
    def run(*command, **options)
      system(*command, exception: true, **options)
    rescue RuntimeError, Errno::ENOENT => e
      raise Impossible, e.message
    end

    def words(command) = command.grep(String).join(" ")
    private_class_method :words
  end
end
