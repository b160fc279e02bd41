# frozen_string_literal: true

module Fairlead
  module Acme
    # What has become of an order so far, and when something is to be done about it. Files can fail: what is known stays in memory.
    class Schedule
      # How long to wait for another process that is ordering, in seconds.
      BUSY_PAUSE = 10

      # How long a file that was there may be away or damaged before it is written again, in seconds, and how soon that is tried again.
      MISSING_PAUSE = 10
      RETRY_PAUSE = 60

      attr_reader :order

      # The Certificate in use; nil if there is none for these hosts. The Failure of the last attempt, or nil.
      attr_reader :certificate, :failure

      # One that knows what is there.
      def self.read(...) = new(...).tap(&:read)

      # +log+: for #acme_state_unusable; may be nil.
      def initialize(order, store, log: nil)
        @order = order
        @store = store
        @log = log
        @not_before = Time.at(0)
        @busy = false
        @suggestion = Suggestion.new
      end

      # Whether it is time to order, for the first time or again, or to write the file of the certificate again.
      def due?(now = Time.now)
        forgive
        bound(now)
        look(now)
        lost?(now) || wanted?(now)
      end

      # The same, but for a file that is to be written again.
      def wanted?(now = Time.now) = now >= at

      # Whether the authority wants the certificate to be replaced.
      def recalled?(now = Time.now) = !@suggestion.at.nil? && now >= @suggestion.at

      # Whether it is time to ask the authority when it wants the certificate to be renewed.
      def ask?(now = Time.now) = !certificate.nil? && failure.nil? && @suggestion.due?(certificate, now)

      # +answer+: of a Question.
      def suggest(answer)
        answer ? @suggestion.take(certificate, *answer) : @suggestion.none
        @log&.acme_suggested(self, @suggestion.at) if @suggestion.at && @suggestion.at < certificate.renew_at
      end

      # When it is.
      def at = [failure ? failure.retry_at : wanted_at, @not_before].compact.max

      # Another process has ordered it, or has given it up.
      def read(now = Time.now)
        look(now)
        found = kept_failure(now)
        @failure = [found, (failure unless @recorded)].compact.max_by(&:retry_at)
        @recorded = !failure.nil? && failure.equal?(found)
      end

      # There is a new certificate. Returns the Problem if it is due for renewal at once: by its clock or ours, it is about to end.
      def succeeded(now = Time.now)
        look(now)
        return due_at_once if certificate.nil? || now >= wanted_at

        @failure = nil
        @store.folder.delete(*@store.failure(order))
        nil
      rescue SystemCallError
        nil # it does not count any more when its time has come
      end

      # Counts a failure, whether it can be written to the disk or not. Returns why it cannot, or nil.
      def failed(problem)
        @busy = false
        @failure = Failure.after(failure, order, problem)
        @recorded = false
        @store.folder.write(*@store.failure(order), failure.to_json)
        @recorded = true
        nil
      rescue SystemCallError => e
        Error.reason(e)
      end

      # Another process orders it.
      def put_off(seconds = BUSY_PAUSE)
        @busy = true
        @not_before = Time.now + seconds
      end

      # Whether it was so at the last attempt.
      def busy? = @busy

      # Keeps the text of a certificate that could not be written.
      def hold(text)
        @held = text
      end

      # Whether there is such a text. Raises SystemCallError if it cannot be written now, either.
      def write_held
        return false unless @held

        @store.folder.write(*@store.certificate(order), @held)
        @held = nil
        true
      end

      # Whether the file of the certificate in use has gone, or has been damaged, for long enough.
      def lost?(now = Time.now) = !@missing_since.nil? && now >= @missing_since + MISSING_PAUSE

      # Writes that file again, because an authority issues only a few certificates for the same hosts. Returns whether it has done so; if
      # that fails, it is to be tried again.
      def restore(now = Time.now)
        restored = @store.exclusively_for(order.hosts) { write_again(now) || :found }
        @missing_since = now unless restored # another process is ordering one
        @unwritten = nil
        restored == true
      rescue SystemCallError => e
        @missing_since = now + RETRY_PAUSE - MISSING_PAUSE
        tell_unwritten(Error.reason(e))
        false
      end

      private

      def wanted_at = [certificate&.renew_at, @suggestion.at].compact.min

      # Another process may have done so before.
      def write_again(now)
        look(now)
        return false unless lost?(now)

        @store.folder.write(*@store.certificate(order), @text)
        @log&.acme_restored(self)
        look(now)
        true
      end

      def tell_unwritten(reason)
        @log&.acme_not_restored(self, reason) unless reason == @unwritten
        @unwritten = reason
      end

      # Reads the certificate if its file has changed.
      def look(now)
        state = @store.state_of_certificate(order)
        return if state == @state

        @state = state
        found = usable
        @missing_since = ((@missing_since || now) if found.nil? && certificate)
        return unless found

        @busy = false
        @text = found.text
        @certificate = found.certificate
        @suggestion.due?(certificate, now) # which drops what was suggested for another one
      end

      # The Bundle of the file if it is for these hosts and the engine can load it.
      def usable
        text = @store.folder.read(*@store.certificate(order), most: Bundle::MOST_BYTES + 1) or return
        bundle = Bundle.new(text, @store.path_of(order))
        fault = bundle.fault
        @log&.acme_state_unusable(fault) if fault
        bundle if fault.nil? && bundle.certificate.for?(order)
      rescue SystemCallError => e
        @log&.acme_state_unusable("#{@store.path_of(order)}: #{Error.reason(e)}")
        nil
      end

      def kept_failure(now)
        text = @store.folder.read(*@store.failure(order), most: Bundle::MOST_BYTES) or return
        Failure.parse(text, order, now: now) { |reason| @log&.acme_state_unusable("#{failure_path}: #{reason}") }
      rescue SystemCallError => e
        @log&.acme_state_unusable("#{failure_path}: #{Error.reason(e)}")
        nil
      end

      def failure_path = @store.folder.join(*@store.failure(order))

      # A file that was written and is deleted means: the next attempt is to be made now. A folder that is gone means nothing.
      def forgive
        return unless @recorded && !File.exist?(failure_path) && File.readable?(File.dirname(failure_path))

        @failure = nil
        @recorded = false
      end

      # Clocks can be set back.
      def bound(now)
        @failure = failure&.bounded(now)
        @not_before = now if @not_before > now + BUSY_PAUSE
        @missing_since = now if @missing_since && @missing_since > now + RETRY_PAUSE
      end

      def due_at_once
        return Problem.new("badCertificate", "the new certificate is not in its file") unless certificate

        Problem.new("badCertificate", "the new certificate, valid from #{certificate.begins_at.getutc} to #{certificate.expires_at.getutc}, is due " \
                                      "for renewal at once: the clock of this machine or of the authority is wrong")
      end
    end
  end
end
