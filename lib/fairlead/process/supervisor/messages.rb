# frozen_string_literal: true

module Fairlead
  # What the supervisor learns from its processes: by their links, and by their ends.
  class Supervisor
    private

    def read_links
      @generations.each { |generation| messages_of(generation) { |message| spawner_says(generation, message) } }
      @workforce.children.each { |child| messages_of(child) { |message| worker_says(child, message) } }
    end

    def messages_of(process, &block)
      return if process.link.closed?

      process.link.messages.each do |message|
        message.equal?(Link::GONE) ? process.link.close : block.call(message)
      end
    end

    # The rest of what a process has said that has ended.
    def hear_out(process, &block)
      messages_of(process, &block)
      process.link.close
    end

    # --- spawners

    def spawner_says(generation, message)
      case message.kind
      when :tls then generation.description = message.fields.join
      when :ready then spawner_ready(generation)
      when :certificates then @certificates.answered(generation, *message.fields)
      when :failed then generation.failed!(message.fields.first)
      when :ask then ask(message.fields.first.to_sym)
      end
    end

    def spawner_ready(generation)
      generation.ready!
      @certificates.bring_to(generation)
    end

    def spawner_ended(generation, status)
      hear_out(generation) { |message| spawner_says(generation, message) }
      return if @stopping || generation.ending?

      reason = generation.error || "its spawner ended: #{@log.describe(status)}"
      generation.failed!(reason)
      return @restarts.target_failed(reason) if @restarts.target?(generation)
      return give_up(reason) unless @ever_booted

      @log.spawner_lost(generation, reason)
      @generations.lost(generation)
    end

    # If no worker has ever been ready, the server ends: the application cannot be loaded. +reason+: if it has not been said.
    def give_up(reason)
      @defeat = reason
      @status = 1
      start_ending(:stop, now + EXIT_GRACE)
    end

    # --- workers

    def worker_says(child, message)
      case message.kind
      when :forked then child.forked(message.number)
      when :booted then worker_booted(child)
      when :failed then worker_failed(child, message.fields.first)
      when :certificates then @certificates.answered(child, *message.fields)
      when :promoted then worker_promoted(child)
      when :ask then ask(message.fields.first.to_sym)
      end
    end

    def worker_booted(child)
      child.booted!
      @ever_booted = true
      @log.worker_booted(child, now - child.started_at)
      @certificates.bring_to(child)
    end

    def announce
      @announced = true
      @service.announce
      @log.ready(@service.configuration)
      @generations.current.booted
    end

    def worker_failed(child, reason)
      return if @stopping

      @log.worker_failed_to_boot(child.index, reason)
      return give_up(nil) unless @ever_booted

      @restarts.target_failed("worker #{child.index} cannot start: #{reason}") if @restarts.target?(@generations[child.generation])
    end

    # A worker has stopped serving and become a spawner.
    def worker_promoted(child)
      @workforce.children.remove(child)
      @shared.reset(child.slot)
      generation = @generations.add(Generation.new(child.promoted_to, child.pid, child.link, ready: true, warm: true))
      @certificates.bring_to(generation)
      @restarts.promoted(generation)
    end

    # --- their ends

    # A signal that has ended one of them may have been sent to the whole process group. Then this process has it, too, and acts on it
    # first: it has been asked to end, and no process is lost. +events+: those that have not been acted on.
    def reap(events)
      spawners = @generations.reap
      workers = @workforce.reap
      act_on_all(events.slice!(0..) + @signals.wait(0)) if spawners.any? || workers.any?
      spawners.each { |generation, status| spawner_ended(generation, status) }
      workers.each { |child, status| worker_ended(child, status) }
      reap_strangers
    end

    def worker_ended(child, status)
      hear_out(child) { |message| worker_says(child, message) }
      @generations.current&.worker_ended(child, status)
      return if @stopping

      worker_lost(child, status) unless child.ending?
      held_back(child, status) if child.unfit? || !child.ending?
    end

    # As with an application that cannot be loaded, clients must not wait for a server that will never serve.
    def held_back(child, status)
      attempts = @workforce.hold_back(child)
      return if @ever_booted || attempts < ATTEMPTS

      give_up("no worker could start, in #{attempts} attempts; the last one: #{@log.describe(status)}")
    end

    # Nobody has asked it to end.
    def worker_lost(child, status)
      @log.worker_ended(child, status)
      @generations.current.worker_lost(child.index)
      return if child.booted? || !@restarts.target?(@generations[child.generation])

      @restarts.worker_died("worker #{child.index} ended while it started: #{@log.describe(status)}")
    end

    def reap_strangers
      return if @strangers_seen_at && now - @strangers_seen_at < Reaper::INTERVAL

      @strangers_seen_at = now
      known = [*@workforce.children, *@generations].filter_map(&:pid)
      @strangers = Reaper.reap_strangers(@strangers || [], except: known)
    end

    # All deadlines are moments of running time: after a pause of the machine, nobody is late.
    def now = @clock.now
  end
end
