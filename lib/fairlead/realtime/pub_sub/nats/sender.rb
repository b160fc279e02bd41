# frozen_string_literal: true

require "json"

module Fairlead
  module PubSub
    class NATS
      # The connection that publishes. Without a stream, a fence after each batch confirms it. With one, NATS confirms each message.
      class Sender
        # The field with a name that is too long for a subject.
        CHANNEL = "Fairlead-Channel"

        # Bytes for the fields of a message.
        FIELDS = 64

        def initialize(session, subjects, stream, patience)
          @session = session
          @subjects = subjects
          @stream = stream
          @number = 0
          session.on_problem { |error| (@violations ||= {})[error.subject] = error if error.is_a?(Client::Violation) }
          stream&.create(session.client, patience)
        rescue StandardError
          session.close
          raise
        end

        # Returns nil for each confirmed message, and an exception for each refused one.
        def publish(batch, seconds)
          @violations = nil
          refusals = {}
          numbers = batch.to_h { |publication| [@number += 1, publication] }
          numbers.reject! { |number, publication| refusals[publication] = refusal(number, publication) }
          @session.fence
          await(numbers, refusals, seconds)
          batch.map { |publication| refusals[publication] || violation(publication) }
        end

        def usable? = @session.usable?
        def close = @session.close

        private

        # Sends the message, or returns why not. Its reply subject makes each message different, for a process with several matching
        # subscriptions.
        def refusal(number, publication)
          fields = fields(publication.channel)
          size = publication.message.bytesize + (fields ? fields.values.first.bytesize + FIELDS : 0)
          if size > @session.max_payload
            return Broker::Refused.new("a message has #{size} bytes, and NATS takes #{@session.max_payload} (max_payload)")
          end

          send(@subjects.subject(publication.channel), publication.message.b, @session.reply_subject(number), fields)
          nil
        end

        def fields(channel) = @subjects.digest?(@subjects.subject(channel)) ? { CHANNEL => @subjects.escape(channel) } : nil

        def send(subject, data, reply, fields)
          return @session.client.publish(subject, data, reply) unless fields

          @session.client.publish_msg(::NATS::Msg.new(subject: subject, data: data, reply: reply, header: fields))
        end

        # The stream may confirm in any order.
        def await(numbers, refusals, seconds)
          deadline = Clock.now + seconds
          unconfirmed = @stream ? numbers.dup : {}
          is_fenced = false
          until is_fenced && unconfirmed.empty?
            message = @session.pop(deadline - Clock.now) or raise Broker::Silence, "NATS has not replied for #{seconds} s"
            next is_fenced = true if @session.fence?(message)

            publication = unconfirmed.delete(@session.reply_number(message)) or next
            error = @stream.error(message) and refusals[publication] = error
          end
        end

        def violation(publication) = @violations && @violations[@subjects.subject(publication.channel)]
      end
    end
  end
end
