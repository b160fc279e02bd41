# frozen_string_literal: true

module Agoo
  # How agoo's clients differ from Fairlead's: a subject is always a pattern, a client can give up all its subscriptions
  # at once, an event of a stream is named "msg", and the handler hears of a write that could not be queued. What agoo's
  # clients do not take (a block, `match:`) is left to Fairlead.
  module Client
    EVENT = "msg"

    # A message as agoo sends it.
    def self.text(message)
      message.is_a?(String) ? message : message.to_s
    end

    # Without further arguments as in agoo: messages go straight to the client.
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
