# frozen_string_literal: true

module Fairlead
  # Prepares the memory of a process for copies that share it: pages with old objects are rarely written to.
  #
  # Before Ruby 3.4 a major garbage collection in a copy writes to the call caches of all methods, and the copy shares them no more. Ruby
  # begins one when a minor collection leaves few free slots of one size, and this size has no room to grow. So each size gets room first.
  module SharedHeap
    COSTLY_COLLECTIONS = (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 4]).negative?

    # Pages by which the slots of one size can grow without a major collection, for each page with objects: Ruby wants a fifth of the slots
    # free after a minor collection, and requests that run meanwhile have objects too. Each copy fills this room before it collects.
    FREE = 0.25
    FOR_REQUESTS = 0.15

    # Pages for the objects of requests, at least and at most.
    LIMITS = (12..40)

    # Variables of Ruby for users who choose the growth of the heap themselves. With them the memory may grow by a half meanwhile.
    TUNED = /\ARUBY_GC_HEAP_(?:GROWTH|FREE_SLOTS_(?:MIN|GOAL))_/

    # If more than this part of the slots is room, Ruby frees pages until each minor collection leaves too few, unless the variable forbids it.
    # A size with fewer than 10,000 slots always grows, and five sizes may have twice as many.
    MOST_FREE = 0.6
    SMALL = 100_000
    FREES = "RUBY_GC_HEAP_FREE_SLOTS_MAX_RATIO"

    # Array elements for which there is a slot of this size, and the bytes beside them.
    ELEMENT = 8
    HEADER = 16

    # Objects between two looks at the number of pages, and looks, at most: in case objects have other sizes than expected.
    BATCH = 200
    LOOKS = 5_000

    class << self
      # Collects garbage, and returns free memory to the system: a worker that becomes the spawner has more than it will ever need again.
      # +soon+: the server waits for its first fork. One collection of all objects has to do, and old garbage gets room like objects.
      def prepare(soon: false)
        if !gives_room?
          collect
        elsif soon
          Collections.start(full_mark: false)
          make_room
          collect
        else
          collect
          collect if make_room
        end
        Native.trim_memory!
        Native.release_stack!
        Native.spare_collections! if COSTLY_COLLECTIONS
      end

      # True after #prepare if the process has dropped so much that its copies will lose their room.
      def loses_room?
        return false if !gives_room? || ENV.key?(FREES)

        room, all = GC.stat_heap.each_value.map { |stat| slots(stat) }.transpose.map(&:sum)
        all > SMALL && room > all * MOST_FREE
      end

      private

      # Slots of a size that can be allocated, and all of them.
      def slots(stat)
        pages, room = stat.fetch_values(:heap_eden_pages, :heap_allocatable_pages)
        each = stat.fetch(:heap_eden_slots).fdiv([pages, 1].max)
        [room * each, (pages + room) * each]
      end

      def collect = Process.respond_to?(:warmup) ? Process.warmup : Collections.start

      def gives_room? = COSTLY_COLLECTIONS && Process.respond_to?(:warmup) && GC.respond_to?(:stat_heap) && ENV.each_key.grep(TUNED).empty?

      # Fills new pages with garbage, for sizes that lack room. The next collection frees these pages, and Ruby may allocate as many again.
      # Returns true if there are such pages.
      def make_room
        Collections.without { GC.stat_heap.map { |pool, stat| fill(pool, stat) } }.any?
      end

      # +stat+: of the size pool.
      def fill(pool, stat)
        pages = stat.fetch(:heap_eden_pages)
        needed = full_pages(stat)
        wanted = (needed + (needed * FREE) + (needed * FOR_REQUESTS).clamp(LIMITS)).ceil
        return if pages + stat.fetch(:heap_allocatable_pages) >= wanted

        length = (stat.fetch(:slot_size) - HEADER) / ELEMENT
        LOOKS.times do
          break if GC.stat_heap(pool, :heap_eden_pages) >= wanted

          BATCH.times { [nil] * length }
        end
        true
      end

      # Pages that the objects would fill. Compaction cannot move all objects, so they are on more pages, and these have free slots.
      def full_pages(stat)
        slots = stat.fetch(:heap_eden_slots)
        return 0 if slots.zero?

        objects = stat.fetch(:total_allocated_objects) - stat.fetch(:total_freed_objects)
        objects * stat.fetch(:heap_eden_pages).fdiv(slots)
      end
    end
  end
end
