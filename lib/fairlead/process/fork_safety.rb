# frozen_string_literal: true

require "socket"

module Fairlead
  # Finds what a process must not have when copies of it are to serve: threads and timers, which do not run in a copy, and connections and
  # child processes, which copies would share.
  module ForkSafety
    # Threads that their libraries start again in a copy, by the files that have started them.
    RESTARTED = %r{/(?:concurrent-ruby[^/]*/.+|concurrent/executor/[^/]+)\.rb:\d+}

    # Seconds in which native threads may end.
    PATIENCE = 5

    # Files of this library.
    OWN = __dir__.delete_suffix("process").freeze

    # Names of the native threads of this library. Threads that a request has started have the name of its thread, such as "fairlead 1".
    OWN_NATIVE = /\Afairlead (?!\d)/

    class << self
      # Phrases for a log line, one for each thing that a copy of this process would lack or share.
      def problems = [*threads, *timers, *native_threads, *connections, *child_processes]

      # Closes the connections of Active Record, which opens new ones when it needs them.
      def disconnect
        return unless defined?(::ActiveRecord::Base)

        every_role = (:all if ::ActiveRecord.gem_version >= Gem::Version.new("7.1"))
        ::ActiveRecord::Base.connection_handler.clear_all_connections!(every_role)
      end

      private

      def threads
        others = Thread.list.reject { |thread| thread == Thread.current || restarted?(thread) }
        others.map { |thread| "thread #{thread.inspect[/@\S+ \S+:\d+|\S+:\d+(?= )/] || thread.inspect} would not run in the copies" }
      end

      # Libraries mark threads that they start again, as Active Record does, with the variable that Puma looks for.
      def restarted?(thread)
        return true if thread.thread_variable_get(:fork_safe)

        place = thread.inspect
        place.match?(RESTARTED) || place.include?(" #{OWN}") || (defined?(::Timeout) && place.include?(" #{file_of_timeout}:"))
      end

      def file_of_timeout = ::Timeout.method(:timeout).source_location.first

      # The threads of concurrent-ruby start again, but a copy forgets the timers that wait.
      def timers
        return [] unless defined?(::Concurrent::TimerSet)

        waiting = ObjectSpace.each_object(::Concurrent::TimerSet).sum { |set| set.instance_variable_get(:@queue)&.length.to_i }
        waiting.zero? ? [] : ["timers of concurrent-ruby (#{waiting}) would not run in the copies"]
      end

      # Threads of libraries in other languages. Ruby keeps the native threads of ended ones for some seconds.
      def native_threads
        give_up = Clock.now + PATIENCE
        names = native_names
        until names.empty? || Clock.now > give_up
          sleep 0.1
          names = native_names
        end
        names.map { |name| "the native thread #{name} would not run in the copies" }
      rescue Errno::ENOENT
        [] # not on Linux
      end

      # The names of threads that do not belong to Ruby and to this library. Ruby may have one of its own, without a name.
      def native_names
        names = Dir.children("/proc/self/task").to_h { |id| [Integer(id, 10), name_of(id)] }
        main = names[Process.pid]
        Thread.list.each { |thread| names.delete(thread.native_thread_id) }
        others = names.values.compact.grep_v(OWN_NATIVE)
        others.delete_at(others.index(main) || others.size)
        others
      end

      # Returns nil for a thread that has ended.
      def name_of(task)
        File.read("/proc/self/task/#{task}/comm", mode: "rb").chomp
      rescue SystemCallError
        nil
      end

      # Copies would write to the same pipes, and read each other's responses.
      def child_processes
        children = Dir["/proc/self/task/*/children"].flat_map { |file| File.read(file).split }
        running = children.filter_map { |id| name_of_running(id) }
        running.map { |name| "the child process #{name} would be shared by the copies" }
      rescue SystemCallError
        [] # the kernel does not list them
      end

      # Returns nil for a process that has ended.
      def name_of_running(id)
        name, state = File.read("/proc/#{id}/stat", mode: "rb").match(/\((.*)\) (\S)/m)&.captures
        "#{id} (#{name})" if name && state != "Z"
      rescue SystemCallError
        nil
      end

      # Returns nil for a process that cannot list its descriptors.
      def connections
        descriptors = Dir.children("/dev/fd").map { |number| Integer(number, 10) }
        descriptors.filter_map { |number| peer(number) }.map { |peer| "the connection to #{peer} would be shared by the copies" }
      rescue Errno::ENOENT
        []
      end

      # The address at the other end of a connection that this process has opened; nil for anything else.
      def peer(descriptor)
        socket = BasicSocket.for_fd(descriptor)
        socket.autoclose = false
        return unless socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM

        address = socket.remote_address
        return address.inspect_sockaddr unless address.unix?

        address.unix_path unless address.unix_path.empty?
      rescue SystemCallError, SocketError, ArgumentError
        nil
      end
    end
  end
end
