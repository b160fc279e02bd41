# frozen_string_literal: true

require "digest"

module Fairlead
  module PubSub
    class NATS
      # Subjects for channels, and back. Dots separate tokens in both. Other characters that NATS does not take are percent-encoded; an
      # empty token is a single %. A name that is too long for a subject becomes %% and a digest; then a field of the message has the
      # name.
      class Subjects
        # Most bytes in a subject; a line of the protocol has 4,096 by default.
        MOST_BYTES = 2_000

        SPECIAL = /[^\x21-\x7e]|[*>.%]/n
        WILDCARDS = ["*", ">"].freeze
        GLOB = /[*?\[\\]/n
        PREFIX = /\A[^\s*>.]+(?:\.[^\s*>.]+)*\z/

        attr_reader :prefix

        def initialize(prefix)
          raise ArgumentError, "a prefix is one or more tokens of a NATS subject, for example \"app\"" unless PREFIX.match?(prefix)

          @prefix = prefix
          @start = "#{prefix}.".b.freeze
          freeze
        end

        def all = "#{prefix}.>"

        # Subject for a subscription.
        def entry(to, match)
          case match
          when nil then subject(to)
          when :subject then short(tokens(to).map { |token| WILDCARDS.include?(token) ? token : escape(token) }) || all
          when :redis then short([*tokens(to[/\A#{GLOB.source.sub("[", "[^")}*/n])[..-2].map { |token| escape(token) }, ">"]) || all
          end
        end

        # Subject of a channel.
        def subject(channel)
          short(tokens(channel).map { |token| escape(token) }) || "#{@start}%%#{Digest::SHA256.hexdigest(channel)}"
        end

        # True if the subject does not have the name of the channel.
        def digest?(subject) = subject.start_with?("#{@start}%%")

        # The channel of a subject; nil if it is none.
        def channel(subject)
          return unless subject.start_with?(@start)

          subject.delete_prefix(@start).split(".", -1).map { |token| unescape(token) }.join(".").b
        end

        # A text as a single line.
        def escape(text) = text.empty? ? "%" : text.gsub(SPECIAL) { |character| format("%%%02X", character.ord) }

        def unescape(text) = text == "%" ? "".b : text.b.gsub(/%(\h\h)/n) { Regexp.last_match(1).hex.chr }

        private

        # A String has no last empty token, if it is empty.
        def tokens(name) = name.empty? ? [""] : name.split(".", -1)

        def short(tokens)
          subject = "#{@start}#{tokens.join(".")}"
          subject if subject.bytesize <= MOST_BYTES
        end
      end
    end
  end
end
