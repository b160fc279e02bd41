# frozen_string_literal: true

require_relative "fork_safety/connections"

module Fairlead
  # Finds what a process must not have when copies of it are to serve: threads and timers, which do not run in a copy, and connections, locks
  # of files and child processes, which copies would share.
  module ForkSafety
    # Threads that their libraries start again in a copy, by the files that have started them.
    RESTARTED = %r{/(?:concurrent-ruby[^/]*/.+|concurrent/executor/[^/]+)\.rb:\d+}

    # Seconds in which threads may end, and seconds between two looks, at least. A look at ten thousand connections takes long, so the pause
    # is so many times as long.
    PATIENCE = 5
    PAUSE = 0.1
    PAUSE_FACTOR = 20

    # Files of this library.
    OWN = __dir__.delete_suffix("process").freeze

    # Names of the native threads of this library. Threads that a request has started have the name of its thread, such as "fairlead 1".
    OWN_NATIVE = /\Afairlead (?!\d)/

    # Applications may have classes of threads with methods of their own.
    INSPECT = Thread.instance_method(:inspect)

    # Libraries mark threads that they start again, as Active Record does, with the variable that Puma looks for.
    MARK = :fork_safe

    class << self
      # Phrases for a log line, one for each thing that a copy of this process would lack or share. The process has stopped serving.
      def problems
        connections = Connections.open.transform_values { |peer| shared("connection to #{peer}") }
        [threads, timers, lasting { native_threads }, connections, file_locks, child_processes].flat_map(&:values)
      end

      # The same for a process that serves. Requests may have threads and connections of their own, so only those count that stay for
      # PATIENCE. +connections+: a block that returns the Connections to be looked at.
      def lasting_problems(&connections)
        lasting do
          others = connections.call.transform_values { |peer| shared("connection to #{peer}") }
          [threads, timers, native_threads, others, file_locks, child_processes].reduce(:merge)
        end.values
      end

      # The names and places of threads and timers that the processes that are forked from this one lack. +but+: threads that are meant for
      # this process.
      def missing_in_copies(but: [])
        [*(application_threads - but).map { |thread| place_of(thread) }, *timer_count]
      end

      # Returns true if the application runs something beside requests: threads, or tasks and timers of concurrent-ruby.
      def busy? = application_threads.any? || timer_count.any? || tasks.positive?

      # The peers of connections that the processes that are forked from this one share. Connections of Active Record are closed first.
      def shared_peers
        return [] if Connections.open.empty?

        disconnect
        Connections.open.values
      end

      # Closes the connections of Active Record, which opens new ones when it needs them.
      def disconnect
        return unless defined?(::ActiveRecord::Base)

        every_role = (:all if ::ActiveRecord.gem_version >= Gem::Version.new("7.1"))
        ::ActiveRecord::Base.connection_handler.clear_all_connections!(every_role)
      end

      private

      def missing(name) = "#{SystemText.in_line(name)} would not run in the copies"
      def shared(name) = "the #{SystemText.in_line(name)} would be shared by the copies"

      # The part of a Hash, by identities, that the block returns again and again.
      def lasting
        began = Clock.now
        found = yield
        pause = [PAUSE, (Clock.now - began) * PAUSE_FACTOR].max
        until found.empty? || Clock.now > began + PATIENCE
          sleep pause
          found = found.slice(*yield.keys)
        end
        found
      end

      def threads = application_threads.to_h { |thread| [thread, missing(place_of(thread))] }

      # The main thread forks.
      def application_threads
        Thread.list.reject { |thread| thread == Thread.current || thread == Thread.main || restarted?(thread) }
      end

      def place_of(thread)
        text = inspection(thread)
        "thread #{text[/@\S+ \S+:\d+|\S+:\d+(?= )/] || text}"
      end

      # Its name can have any bytes.
      def inspection(thread) = SystemText.in_line(INSPECT.bind_call(thread))

      def restarted?(thread)
        return true if thread.thread_variable_get(MARK) || thread[MARK]

        place = inspection(thread)
        place.match?(RESTARTED) || place.include?(" #{OWN}") || (defined?(::Timeout) && place.include?(" #{file_of_timeout}:"))
      end

      def file_of_timeout = ::Timeout.method(:timeout).source_location.first

      def timers = timer_count.to_h { |name| [:timers, missing(name)] }

      # The threads of concurrent-ruby start again, but a copy forgets the timers that wait.
      def timer_count
        return [] unless defined?(::Concurrent::TimerSet)

        waiting = ObjectSpace.each_object(::Concurrent::TimerSet).sum { |set| set.instance_variable_get(:@queue)&.length.to_i }
        waiting.zero? ? [] : ["timers of concurrent-ruby (#{waiting})"]
      end

      # Number of tasks in the pools of concurrent-ruby, which Active Job's `:async` adapter uses.
      def tasks
        return 0 unless defined?(::Concurrent::ThreadPoolExecutor)

        ObjectSpace.each_object(::Concurrent::ThreadPoolExecutor).sum { |pool| pool.scheduled_task_count - pool.completed_task_count }
      end

      # Threads of libraries in other languages, which do not belong to Ruby and to this library. Ruby keeps the native threads of ended
      # ones for some seconds. It may have one of its own, without a name.
      def native_threads
        names = Dir.children("/proc/self/task").to_h { |id| [Integer(id, 10), name_of(id)] }
        main = names[Process.pid]
        Thread.list.each { |thread| names.delete(thread.native_thread_id) }
        others = names.compact.reject { |_, name| name.match?(OWN_NATIVE) }
        others.delete(others.key(main))
        others.to_h { |id, name| ["task #{id}", missing("the native thread #{name}")] }
      rescue Errno::ENOENT
        {} # not on Linux
      end

      # Returns nil for a thread that has ended.
      def name_of(task)
        File.read("/proc/self/task/#{task}/comm", mode: "rb").chomp
      rescue SystemCallError
        nil
      end

      # Exclusive locks of flock(2) that this process has taken. They belong to the open file, so each copy would hold them, too. A lock that
      # the spawner has taken is shared already.
      def file_locks
        taken = File.readlines("/proc/locks").filter_map { |line| line[/\A\d+: FLOCK +\S+ +WRITE +#{Process.pid} (\S+) /, 1] }
        taken.to_h { |file| ["lock #{file}", shared("lock of #{path_of(Integer(file[/\d+\z/], 10))}")] }
      rescue SystemCallError
        {} # not on Linux
      end

      # +inode+: of an open file.
      def path_of(inode)
        found = Dir.children("/proc/self/fd").find { |number| inode_of(number) == inode }
        found ? File.readlink("/proc/self/fd/#{found}") : "a file"
      rescue SystemCallError
        "a file"
      end

      def inode_of(descriptor)
        File.stat("/proc/self/fd/#{descriptor}").ino
      rescue SystemCallError
        nil
      end

      # Copies would write to the same pipes, and read each other's responses.
      def child_processes
        children = Dir["/proc/self/task/*/children"].flat_map { |file| File.read(file).split }
        running = children.to_h { |id| ["process #{id}", name_of_running(id)] }.compact
        running.transform_values { |name| shared("child process #{name}") }
      rescue SystemCallError
        {} # the kernel does not list them
      end

      # Returns nil for a process that has ended.
      def name_of_running(id)
        name, state = File.read("/proc/#{id}/stat", mode: "rb").match(/\((.*)\) (\S)/m)&.captures
        "#{id} (#{name})" if name && state != "Z"
      rescue SystemCallError
        nil
      end
    end
  end
end
