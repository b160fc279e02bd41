# frozen_string_literal: true

# bin/soak: drives a real server with clients of all kinds for the given time, and checks every response. The requests of a
# client follow from the seed and its number.

require "etc"
require "optparse"
require_relative "checks"
require_relative "phase"

module Fairlead
  # Random load with a check of every response, and of the server's resources afterwards.
  module Soak
    STRESS = { Clients::Stress => 2, Clients::Small => 10, Clients::Keep => 10, Clients::Failing => 10, Clients::Echo => 10 }.freeze
    SCARCITY = { Clients::OpenFiles => 12, Clients::Standing => 6, Clients::Hog => 1, Clients::Upload => 15, Clients::Stall => 6 }.freeze

    # Limits so small that requests and responses always wait in files, or for each other.
    SMALL = %w[--body-memory-bytes 1k --response-memory-bytes 4k --request-memory-total-bytes 2m --response-memory-total-bytes 2m
               --body-disk-total-bytes 200m --response-disk-total-bytes 50m --response-disk-bytes 20m --file-cache-bytes 0
               --messages-pending-bytes 64k].freeze

    PLANS = [
      Phase::Plan.new(name: "workers", share: 0.3, options: %w[-w 3 -t 1:2], acts: Disturber::WORKERS),
      Phase::Plan.new(name: "small limits", share: 0.2, options: ["-w", "2", "-t", "2:3", *SMALL], acts: Disturber::WORKERS),
      Phase::Plan.new(name: "alone", share: 0.2, options: %w[-w 0 -t 0:5 --response-disk-bytes 1m], acts: Disturber::ALONE),
      Phase::Plan.new(name: "few descriptors", share: 0.15, options: %w[-w 2 -t 5:5], limit: 500, shares: SCARCITY),
      Phase::Plan.new(name: "collecting garbage", share: 0.15, options: %w[-w 2 -t 3:3], acts: Disturber::KILLS, shares: STRESS, crowd: 12)
    ].freeze

    # The command line.
    class Command
      def initialize(arguments)
        @seed = Random.new_seed % (1 << 32)
        @only = @except = []
        @plans = PLANS
        parser.parse!(arguments)
        @seconds = Float(arguments.fetch(0, 60))
        abort "unknown kind of client" if Clients::Client.all.none? { |kind| comes?(kind) }
      end

      def run
        return report(*Checks.new.run(*@checks)) if @checks

        puts "seed #{@seed}"
        whole = @plans.sum(&:share)
        phases = []
        @plans.each do |plan|
          phases << Phase.new(plan, @seed) { |kind| comes?(kind) }.run(@seconds * plan.share / whole)
          break if phases.last.spoiled?
        end
        report(phases.sum(&:passed), phases.sum(&:failed))
      rescue ArgumentError => e
        abort e.message
      end

      private

      def report(passed, failed)
        puts "", "#{passed} passed, #{failed} failed"
        exit(failed.zero?)
      end

      def comes?(kind) = (@only.empty? || @only.include?(kind.kind)) && !@except.include?(kind.kind)

      def parser
        OptionParser.new("usage: bin/soak [options] [SECONDS]") do |options|
          options.on("--seed N", Integer, "repeat what the clients of that seed did") { |seed| @seed = seed }
          options.on("--only KINDS", Array, "clients of these kinds alone: #{Clients::Client.all.map(&:kind).join(", ")}") { |kinds| @only = kinds }
          options.on("--except KINDS", Array, "all but these") { |kinds| @except = kinds }
          options.on("--phases NAMES", Array, "these phases alone: #{PLANS.map(&:name).join(", ")}") do |names|
            @plans = names.map { |name| PLANS.find { |plan| plan.name == name } || raise(OptionParser::InvalidArgument, name) }
          end
          options.on("--checks [NAMES]", Array, "instead, loads of one kind: #{Checks.new.names.join(", ")}") { |names| @checks = [*[names].compact] }
        end
      end
    end
  end
end

$stdout.sync = true
Fairlead::Soak::Command.new(ARGV).run
