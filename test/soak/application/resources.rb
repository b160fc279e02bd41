# frozen_string_literal: true

module Fairlead
  module Soak
    # Resources that the application takes from the process, and its report about them.
    module Resources
      # Returns free memory from the C library's heap to the system, so that only used memory counts.
      TRIM = Fiddle::Function.new(Fiddle.dlopen(nil)["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT)

      class << self
        def all
          { "open" => method(:open_files), "hog" => method(:hog), "stress" => method(:stress), "later" => method(:later),
            "tidy" => method(:tidy) }
        end

        # Opens the few descriptors that any application needs.
        def open_files(asked)
          files = Array.new(4) { File.open(File::NULL) }
          sleep(asked["ms"].to_i / 1000.0)
          files.each(&:close)
          Answers.small(asked)
        rescue Errno::EMFILE
          [503, asked.fields("x-starved" => "1"), ["no descriptor"]]
        end

        # Opens all available descriptors, for a while.
        def hog(asked)
          files = []
          begin
            loop { files << File.open(File::NULL) }
          rescue Errno::EMFILE
            sleep(asked["ms"].to_i / 1000.0)
          end
          files.each(&:close)
          Answers.small(asked)
        end

        # Collects garbage at every opportunity, and compacts the heap.
        def stress(asked)
          GC.stress = true
          GC.compact if GC.respond_to?(:compact) && asked["compact"]
          Answers.small(asked).tap { Thread.new { sleep(0.02) && GC.stress = false } }
        end

        # A deferred block, on a thread of the server.
        def later(asked)
          Ends.open(:deferred)
          asked["how"] == "defer" ? Fairlead.defer { Ends.close(:deferred) } : Fairlead.run_after(0.01) { Ends.close(:deferred) }
          Answers.small(asked)
        end

        # Makes every process collect its garbage and report its resources.
        def tidy(asked)
          Fairlead.publish("tidy", asked["id"])
          Answers.small(asked)
        end

        # In each process: counts Ruby's threads (native ones wait a while for another use), and objects that have not ended.
        def listen
          Fairlead.subscribe("tidy") do |_, id|
            3.times { GC.start }
            TRIM.call(0)
            File.write(Asked::TIDIED, "#{id} #{Process.pid} #{Thread.list.size} #{Ends.missing.values.join(" ")}\n", mode: "a")
          end
        end
      end
    end
  end
end
