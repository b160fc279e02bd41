# frozen_string_literal: true

require "json"

module Fairlead
  module Acme
    # Does the certificate tasks of the supervisor: looks at files, orders, and asks authorities. The supervisor decides when a
    # task is due (crates/supervisor/src/acme). Each task has its own thread, because disks and authorities can hang, and is
    # answered with facts.
    class Clerk
      # Seconds that #close waits for the threads. A disk that hangs may keep them longer.
      END_LIMIT = 5

      # +service+: an open Service. +link+: to the supervisor.
      def initialize(service, link)
        @service = service
        @link = link
        @log = service.log
        @store = Store.new(service.configuration.acme_dir)
        @orders = service.configuration.acme.to_h { |order| [Failure.digest(order), order] }
        @lock = Mutex.new
        @running = {}
      end

      # Tells the supervisor the configured certificates. Returns false if it cannot take the message now.
      def introduce
        orders = @orders.map do |key, order|
          { key: key, hosts: order.hosts, directory: order.directory, authority: order.authority }
        end
        file = memory_file(JSON.generate(folder: SystemText.shown(@store.folder.path), orders: orders))
        @link.send(:acme_orders, ios: [file])
      ensure
        file&.close
      end

      # Does a task of the supervisor on a thread. +message+: the number of the task, its name, the key of an order, and
      # details, with the text of its certificate if there is one.
      def act_on(message)
        number, task, key, details = message.fields
        text = message.ios.map { |io| contents(io) }.first
        order = @orders[key] or return
        wish = JSON.parse(details, symbolize_names: true)
        case task
        when "look" then run(number, key, task) { look(order, wish, text) }
        when "order" then run(number, key, task, job(order, wish, text)) { |job| place(order, wish, text, job) }
        when "ask" then run(number, key, task, Question.new(order, @store, certificate(text))) { |question| { window: question.run } }
        end
      end

      # Ends running tasks.
      def close
        running = @lock.synchronize do
          @closing = true
          @running.values
        end
        running.each { |_, job| job&.stop }
        limit = RunningTime::Limit.new(END_LIMIT)
        running.each { |thread, _| limit.wait { |rest| thread.join(rest) } }
      end

      private

      # Calls the block with +job+ and answers. If the previous thread of the task still hangs, the task does not run and gets
      # no answer.
      def run(number, key, task, job = nil, &block)
        @lock.synchronize do
          next if @closing || @running.key?([key, task])

          @running[[key, task]] = [thread { carry_out(number, [key, task], job, &block) }, job]
        end
      rescue ThreadError => e
        answer(number, failure(e))
      end

      def thread(&block)
        Thread.new(&block).tap do |thread|
          thread.name = "fairlead acme"
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      # The next task may come as soon as there is an answer.
      def carry_out(number, name, job)
        result = yield(job)
      rescue StandardError, ScriptError, NoMemoryError => e
        @log.control_failed(e) unless @told == e.message
        @told = e.message
        result = failure(e)
      ensure
        @lock.synchronize { @running.delete(name) }
        answer(number, result) unless result.nil? || job&.stopped?
      end

      # --- tasks

      def look(order, wish, text)
        kept = Kept.new(order, @store, log: @log)
        answer = { unusable: unusable }
        answer[:unwritten] = kept.fail(**wish[:fail]) if wish[:fail]
        kept.forget if wish[:forget]
        answer[:restore] = kept.restore(text) if wish[:restore]
        with_facts(answer, kept, wish)
      end

      # The reason why the folder cannot be used; nil if it can. Each look tries again until it can.
      def unusable
        @prepared ||= @store.prepare || true
        nil
      rescue Error => e
        e.message
      end

      def job(order, wish, text)
        Job.new(order, @store, challenge(order), replaces: certificate(text), recalled: wish[:recalled], log: @log)
      end

      # Every authority uses port 80 for HTTP-01, and port 443 for TLS-ALPN-01; only the authority knows which of our listeners
      # it reaches.
      def challenge(order)
        plain = @service.listeners.any? { |listener| listener.address[:scheme] == "http" }
        order.challenge || (plain ? "http-01" : "tls-alpn-01")
      end

      def place(order, wish, text, job)
        kept = Kept.new(order, @store, log: @log)
        return with_facts(write(kept, text), kept, wish) if wish[:held]

        result = job.run { @log.acme_ordering(order, challenge(order)) }
        case result[:outcome]
        when "issued", "current" then with_facts({ outcome: "issued" }, kept, wish)
        when "busy" then with_facts({ outcome: "busy" }, kept, wish)
        else
          with_facts(failed(Problem.new(result[:type], result[:message], retry_after: result[:retry_after])), kept, wish, result[:text])
        end
      end

      # Writes a certificate that was issued earlier and could not be written then.
      def write(kept, text)
        kept.write(text)
        { outcome: "issued" }
      rescue SystemCallError => e
        failure(e)
      end

      def failure(error) = failed(Problem.new("failure", Error.sum_up(error)))

      def failed(problem) = { outcome: { failed: { message: problem.message, retry_after: problem.retry_after } } }

      # +held+: the text of a certificate that could not be written.
      def with_facts(answer, kept, wish, held = nil)
        facts, text = kept.facts(wish[:token], forgotten: wish[:forget])
        { facts: facts, held: !held.nil?, text: held || text, **answer }
      end

      # --- the link

      def answer(number, answer)
        file = memory_file(answer[:text]) if answer[:text]
        fields = JSON.generate(answer.except(:text)).b.scan(/.{1,#{Link::LONGEST_FIELD}}/mno)
        @link.send_soon(:acme, number, *fields, ios: [file].compact)
      ensure
        file&.close
      end

      def certificate(text) = Certificate.parse(text)

      def memory_file(text) = IO.for_fd(Native.memory_file("fairlead acme", text))

      # Processes share one position in the file.
      def contents(io)
        io.pread(io.stat.size, 0)
      ensure
        io.close
      end
    end
  end
end
