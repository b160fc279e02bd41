# frozen_string_literal: true

module Fairlead
  # The part of a process with the application that works for its server, besides forking or serving: a Spawner and a Sole each
  # have one. It reports the configuration, shows signs of life and answers questions about Ruby. As long as its generation is
  # the current one, it looks after the files of certificates and has certificates ordered.
  class Steward
    # Seconds between two signs of life.
    INTERVAL = 1.0

    # +joining+: nil in the first process of a server, and in a process that was a worker.
    def initialize(service, link, joining: nil)
      @service = service
      @log = service.log
      @link = link
      @joining = joining
      @follower = Tls::Follower.new(service.tls) { |key, reason| link.send(:certified, key, *reason) }
      @reported = false
    end

    # Tells the supervisor the configuration, and that the application is loaded. +pid+: the supervisor, if it has forked this
    # process.
    def report(pid)
      settings = @joining ? @joining.settings : SupervisorSettings.new(@service, pid: pid)
      file = settings.file
      Native.outlive_parent! # from now on the link shows its end; another program may replace it
      ready = [file, *@joining&.shared_descriptors]
      (@link.send_listeners(settings.ios) && @link.send(:ready, ios: ready)) || raise(Error, "the supervisor takes no message")
      @reported = true
      @joining&.reported
    ensure
      file&.close
    end

    # Begins without a report, in a process that was a worker.
    def begin
      @reported = true
    end

    # The application cannot be loaded.
    def give_up
      @joining&.close unless @reported
    end

    # Seconds until #look is to be called again.
    def pause = [INTERVAL, @service.configuration.worker_timeout / 4.0].min

    # To be called in the main loop.
    def look
      return unless @reported

      @link.send(:alive)
      return unless @current

      @service.tls.tend
      introduce_orders unless @introduced
    end

    # Acts on a message; returns false if the message is not for a steward.
    def act_on(message)
      case message.kind
      when :current then become_current
      when :certificates then @follower.take(*message.fields.values_at(0, 2), message.ios.first)
      when :reload_certificates then reload_certificates
      when :acme then @clerk&.act_on(message)
      when :reopen_logs then @service.reopen_logs
      when :log then @log.pass_on(*message.fields)
      when :ask_ruby then answer(message.fields.first, message.ios.first)
      when :backtraces then tell_backtraces(message.ios.first)
      else return false
      end
      true
    end

    # Ends the work beside the application.
    def close
      @clerk&.close
      @service.tls.stop
    end

    private

    # --- certificates

    # +kind+: :kept for certificates that the workers of this generation have from the start, or :certificates.
    def send_certificates(kind, offer, settings)
      file = Tls::HandedOver.write(settings)
      @link.send_soon(kind, offer.key, offer.location, offer.fingerprint, ios: [file])
    ensure
      file&.close
    end

    def become_current
      return if @current

      @current = true
      @joining&.adopted
      @clerk = Acme::Clerk.new(@service, @link) if @service.configuration.acme.any?
      @service.tls.take_read.each { |offer, settings| send_certificates(:kept, offer, settings) }
      @service.tls.start { |offer| pass_on(offer) }
      @service.tls.ask if @joining&.replacement? # the files may have changed since others have read them
    end

    # On the thread of the offer.
    def pass_on(offer)
      settings = offer.take_read
      send_certificates(:certificates, offer, settings) if settings
    end

    def reload_certificates
      @service.tls.tend
      @service.tls.ask
    end

    # The supervisor may have orders of a previous generation.
    def introduce_orders
      @introduced = @clerk ? @clerk.introduce : @link.send(:acme_orders)
    end

    # --- questions

    # Without a free descriptor there is no pipe for an answer.
    def answer(what, pipe)
      return unless pipe

      case what
      when "gc" then GC.start
      when "gc-stats" then stats = GC.stat
      when "thread-backtraces" then stats = Backtraces.in_form_of_puma
      end
      Backtraces.write(stats, pipe)
    end

    def tell_backtraces(pipe)
      pipe ? Backtraces.write(Backtraces.all, pipe) : Backtraces.print(@log)
    end
  end
end
