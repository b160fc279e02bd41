# frozen_string_literal: true

module Fairlead
  module PubSub
    class NATS
      # The client of the gem, except for four habits: it ends the connection when NATS does not permit a subject, it uses a
      # connection of the parent process after a fork, it waits without a limit for a broker that stands still when it closes, and
      # its queue of kicks for the thread that writes can be full for ever when that thread has ended.
      class Client < ::NATS::Client
        VIOLATION = /Permissions Violation for (?:Subscription to|Publish to) "([^"]+)"/i

        # NATS does not permit a subject; all others work.
        class Violation < Broker::Refused
          attr_reader :subject

          def initialize(text, subject)
            @subject = subject
            super(text.to_s.delete("'"))
          end
        end

        # Wakes a thread. Further kicks have no effect until it has taken one.
        class Kicks < Thread::SizedQueue
          def initialize = super(1)

          def <<(kick)
            push(kick, true)
          rescue ThreadError
            self
          end
        end

        def connect(...)
          @owner = Process.pid
          super
        end

        # Makes the gem leave the connection alone in a forked process.
        def closed? = super || (!@owner.nil? && @owner != Process.pid)

        # Ends the connection for both sides.
        def break_off
          @io&.socket&.to_io&.shutdown
        rescue SystemCallError, IOError
          nil # it has ended already
        end

        def close
          break_off
          super
        end

        private

        def start_threads!
          @flush_queue = Kicks.new
          super
        end

        def process_err(text)
          subject = text.to_s[VIOLATION, 1] or return super
          err_cb_call(self, Violation.new(text, subject), nil)
        end
      end
    end
  end
end
