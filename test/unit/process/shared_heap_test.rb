# frozen_string_literal: true

require "test_helper"

# Each test has its own process, because the heap of this one has its own history.
class SharedHeapTest < Minitest::Test
  # Slots of 160 bytes: pages with objects that stay, and somewhat more than a fifth as many with garbage. Debian's Ruby 3.3 begins a major
  # collection when requests keep some objects in them.
  CROWDED = <<~RUBY
    GC.disable
    KEPT = Array.new(60_000) { |number| [number] * 15 }
    18_000.times { [nil] * 15 }
    GC.enable
  RUBY

  # The same with fewer objects, as in a small application.
  SMALL = CROWDED.sub("60_000", "19_000").sub("18_000", "5_000")

  # Keeps as many objects as KEEP at any time.
  COPY = <<~RUBY
    reader, writer = IO.pipe
    fork do
      4.times { GC.start(full_mark: false) }
      before = GC.stat(:major_gc_count)
      kept = Array.new(KEEP)
      1_000_000.times { |number| kept[number % KEEP] = [number] * 15 }
      writer.puts GC.stat(:major_gc_count) - before
    end
    writer.close
    print reader.read
    Process.wait
  RUBY

  def setup
    skip "a major collection costs nothing with this Ruby" unless Fairlead::SharedHeap::COSTLY_COLLECTIONS
    skip "this Ruby cannot warm up" unless Process.respond_to?(:warmup)
  end

  def test_a_copy_grows_in_place_of_a_major_collection
    assert_equal "1\n", ruby("KEEP = 6_000; #{CROWDED} Process.warmup; #{COPY}")
    assert_equal "0\n", ruby("KEEP = 6_000; #{CROWDED} Fairlead::SharedHeap.prepare; #{COPY}")
    assert_equal "0\n", ruby("KEEP = 6_000; #{CROWDED} Fairlead::SharedHeap.prepare(soon: true); #{COPY}")
  end

  # Five requests of Rails at a time have 3,000 objects of this size.
  def test_a_small_heap_has_room_for_the_requests_of_several_threads
    assert_equal "1\n", ruby("KEEP = 3_300; #{SMALL} Process.warmup; #{COPY}")
    assert_equal "0\n", ruby("KEEP = 3_300; #{SMALL} Fairlead::SharedHeap.prepare; #{COPY}")
  end

  def test_the_heap_itself_does_not_grow
    pages = "print GC.stat(:heap_allocated_pages)"
    assert_in_delta Integer(ruby("#{CROWDED} Process.warmup; #{pages}")), Integer(ruby("#{CROWDED} Fairlead::SharedHeap.prepare; #{pages}")), 10
  end

  def test_the_first_fork_waits_for_one_collection_of_all_objects
    count = "print GC.stat(:major_gc_count) - before"
    assert_equal "1", ruby("#{CROWDED} before = GC.stat(:major_gc_count); Fairlead::SharedHeap.prepare(soon: true); #{count}")
    assert_equal "2", ruby("#{CROWDED} before = GC.stat(:major_gc_count); Fairlead::SharedHeap.prepare; #{count}")
  end

  def test_a_size_without_objects_gets_room_too
    room = Integer(ruby(<<~RUBY))
      empty = { heap_eden_pages: 0, heap_eden_slots: 0, heap_allocatable_pages: 0, total_allocated_objects: 0, total_freed_objects: 0, slot_size: 160 }
      GC.disable
      Fairlead::SharedHeap.send(:fill, 2, empty)
      print GC.stat_heap(2, :heap_eden_pages)
    RUBY
    assert_operator room, :>=, Fairlead::SharedHeap::LIMITS.min
  end

  # Ruby's collections give the room back then.
  def test_much_old_garbage_is_noticed
    garbage = "Thread.new { list = Array.new(900_000) { |number| [number] * 3 }; 4.times { GC.start }; list.clear; nil }.join"
    check = "Fairlead::SharedHeap.prepare(soon: true); print Fairlead::SharedHeap.loses_room?"

    assert_equal "true", ruby("#{CROWDED} #{garbage}; #{check}")
    assert_equal "false", ruby("#{CROWDED} #{garbage}; #{check}", { "RUBY_GC_HEAP_FREE_SLOTS_MAX_RATIO" => "1" })
    assert_equal "false", ruby("#{CROWDED} #{check}")
    assert_equal "false", ruby(check)
  end

  def test_an_application_may_replace_the_collection
    assert_equal "done", ruby("Fairlead::Collections; def GC.start = raise; Fairlead::SharedHeap.prepare(soon: true); print 'done'")
  end

  def test_collections_stay_off_for_an_application_that_has_turned_them_off
    assert_equal "true", ruby("#{CROWDED} GC.disable; Fairlead::SharedHeap.prepare; print GC.disable")
    assert_equal "false", ruby("#{CROWDED} Fairlead::SharedHeap.prepare; print GC.disable")
  end

  # Each size would fill new pages with garbage.
  def test_a_heap_whose_growth_the_user_has_limited_is_left_alone
    limited = { "RUBY_GC_HEAP_GROWTH_MAX_SLOTS" => "10000" }
    count = "print GC.stat(:total_allocated_objects) - before"
    assert_operator Integer(ruby("before = GC.stat(:total_allocated_objects); Fairlead::SharedHeap.prepare; #{count}", limited)), :<, 5_000
    assert_operator Integer(ruby("before = GC.stat(:total_allocated_objects); Fairlead::SharedHeap.prepare; #{count}")), :>, 5_000
  end

  private

  def ruby(program, environment = {})
    IO.popen([environment, RbConfig.ruby, "-I", File.join(ROOT, "lib"), "-rfairlead", "-e", program], &:read)
  end
end
