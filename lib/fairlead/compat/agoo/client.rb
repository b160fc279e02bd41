# frozen_string_literal: true

module Agoo
  # The differences between agoo's clients and Fairlead's: a subject is always a pattern, a client can end all its subscriptions
  # at once, events of a stream are named "msg", and the handler's on_error is called if a write fails. Arguments that agoo does
  # not have (a block, `match:`) mean the same as without this file.
  module Client
    EVENT = "msg"

    # The text of a message.
    def self.text(message)
      message.is_a?(String) ? message : message.to_s
    end

    # With a subject alone, as in agoo, messages go straight to the client.
    def subscribe(subject = nil, *options, **keywords, &block)
      return super unless options.empty? && keywords.empty? && block.nil?

      made = super(subject, match: :subject, handler: (method(:write_event) if protocol == :sse))
      subjects << subject.to_s if made && !subjects.include?(subject.to_s)
      made
    end

    # Ends the subscription to that subject, or to all of them.
    def unsubscribe(subject = nil, *options, **keywords)
      return super if keywords.any? || (subject && !subjects.include?(subject.to_s))

      ended = subject ? [subject.to_s] : subjects.dup
      ended.each { |one| super(one) }
      @subjects -= ended
      nil
    end

    def publish(subject = nil, message = nil, *engine, **keywords)
      super(subject, message && Client.text(message), *engine, **keywords)
    end

    def write(data, **event)
      event = { event: EVENT, **event } if protocol == :sse
      written = super(data, **event)
      report_error("too many pending messages") unless written || !open?
      written
    end

    private

    def subjects = (@subjects ||= [])

    def write_event(_subject, message) = write(message)

    def report_error(text)
      handler.on_error(self, text) if handler.respond_to?(:on_error)
    end
  end
end

Fairlead::Client.prepend(Agoo::Client)
