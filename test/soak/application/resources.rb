# frozen_string_literal: true

module Fairlead
  module Soak
    # What the application takes from the process, and what it says of it.
    module Resources
      # Gives back what is free in the C library's heap, so that what is left is in use.
      TRIM = Fiddle::Function.new(Fiddle.dlopen(nil)["malloc_trim"], [Fiddle::TYPE_SIZE_T], Fiddle::TYPE_INT)

      class << self
        def all
          { "open" => method(:open_files), "hog" => method(:hog), "stress" => method(:stress), "later" => method(:later),
            "tidy" => method(:tidy) }
        end

        # The few descriptors that any application needs.
        def open_files(asked)
          files = Array.new(4) { File.open(File::NULL) }
          sleep(asked["ms"].to_i / 1000.0)
          files.each(&:close)
          Answers.small(asked)
        rescue Errno::EMFILE
          [503, asked.fields("x-starved" => "1"), ["no descriptor"]]
        end

        # All there are, for a while.
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

        # Collects garbage at every occasion, and moves what can be moved.
        def stress(asked)
          GC.stress = true
          GC.compact if GC.respond_to?(:compact) && asked["compact"]
          Answers.small(asked).tap { Thread.new { sleep(0.02) && GC.stress = false } }
        end

        # A block for later, on a thread of the server.
        def later(asked)
          Ends.open(:deferred)
          asked["how"] == "defer" ? Fairlead.defer { Ends.close(:deferred) } : Fairlead.run_after(0.01) { Ends.close(:deferred) }
          Answers.small(asked)
        end

        # Has every process collect its garbage and note what it holds.
        def tidy(asked)
          Fairlead.publish("tidy", asked["id"])
          Answers.small(asked)
        end

        # In each process: threads of Ruby's (native ones wait for another use for a while), and what has not ended.
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
