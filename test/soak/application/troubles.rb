# frozen_string_literal: true

module Fairlead
  module Soak
    # Applications that fail, leave without returning, or fork.
    module Troubles
      ERRORS = {
        "error" => -> { raise "soak" }, "script" => -> { raise NotImplementedError, "soak" }, "memory" => -> { raise NoMemoryError, "soak" },
        "exit" => -> { exit }, "interrupt" => -> { raise Interrupt }, "throw" => -> { throw :nowhere }, "deep" => -> { Troubles.dive },
        "kill" => -> { Thread.current.kill }, "outside" => -> { Thread.current.then { |own| Thread.new { own.raise("soak") }.join && sleep } }
      }.freeze

      class << self
        def all
          { "fail" => method(:fail), "timeout" => method(:time_out), "catch" => method(:caught), "fork" => method(:fork_child) }
        end

        def dive = dive + 1

        # +at+: in the call, before the first piece of the body, in its middle, or when it is closed.
        def fail(asked)
          trouble = ERRORS.fetch(asked["how"])
          case asked["at"]
          when "call" then trouble.call
          when "first" then [200, asked.fields, Enumerator.new { trouble.call }]
          when "middle" then [200, asked.fields, Bodies::Pieces.new(Bodies.cut(asked.bytes), &trouble)]
          else [200, asked.fields, Rack::BodyProxy.new([asked.bytes], &trouble)]
          end
        end

        # Times out while it sleeps, yields or writes, and responds about it.
        def time_out(asked)
          return timed(asked) { sleep } if asked["in"] == "call"

          body = Enumerator.new do |out|
            Timeout.timeout(0.01) { loop { out << "#{asked.bytes}\n" && Thread.pass } }
          rescue Timeout::Error
            out << "END\n"
          end
          [200, asked.fields, body]
        end

        # Leaves its own frames with throw.
        def caught(asked)
          bytes = catch(:bytes) { Array.new(3) { throw :bytes, asked.bytes } }
          body = Enumerator.new { |out| catch(:done) { Bodies.cut(bytes).each { |piece| out << piece } && throw(:done) } }
          [200, asked.fields, body]
        end

        # Forks a child that inherits all of the server, but is not one.
        def fork_child(asked)
          case asked["how"]
          when "wait" then Process.wait(fork { exit!(0) })
          when "exit" then Process.wait(fork { exit })
          else Process.detach(fork { linger(asked["until"]) })
          end
          Answers.small(asked)
        end

        private

        def timed(asked, &block)
          Timeout.timeout(0.01, &block)
        rescue Timeout::Error
          Answers.small(asked)
        end

        # Sleeps until the client has seen what it needs, the server has gone, or it takes too long.
        def linger(path)
          server = Process.ppid
          1000.times { File.exist?(path) || Process.ppid != server ? exit!(0) : sleep(0.02) }
          File.write("#{path}-in-vain", "")
        ensure
          exit!(0)
        end
      end
    end
  end
end
