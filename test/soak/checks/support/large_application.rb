# frozen_string_literal: true

# The application of the checks that use up memory: 121 bytes, 170 kB at /page, 2 MB at /large, the length of a body or message, and 1 MiB
# for event streams. WebSockets at /news hear 20 kB of each request to /publish.
module LargeApplication
  TEXT = <<~RUBY
    BODY = ("x" * 120 + "\\n").freeze
    PAGE = ("x" * 170_000).freeze
    LARGE = ("x" * 2_000_000).freeze
    NEWS = ("x" * 20_000).freeze
    PIECE = ("x" * 65_536).freeze
    module Talk
      def self.on_open(client)
        16.times { client.write(PIECE) } if client.protocol == :sse
        client.subscribe("news") && client.write("ready") if client.env["PATH_INFO"] == "/news"
      end

      def self.on_message(client, data) = client.write(data.bytesize.to_s)
    end
    run(lambda do |env|
      if env["rack.upgrade?"]
        env["rack.upgrade"] = Talk
        next [200, {}, []]
      end
      case env["PATH_INFO"]
      when "/page" then [200, { "content-length" => PAGE.bytesize.to_s }, [PAGE]]
      when "/large" then [200, { "content-length" => LARGE.bytesize.to_s }, [LARGE]]
      when "/upload" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
      when "/publish" then [200, {}, [Fairlead.publish("news", NEWS).to_s]]
      else
        sleep(WAIT) if WAIT
        [200, { "content-type" => "text/plain", "content-length" => BODY.bytesize.to_s }, [BODY]]
      end
    end)
  RUBY

  # Returns its text. +wait+: seconds that a short response takes.
  def self.text(wait: nil) = "WAIT = #{wait.inspect}\n#{TEXT}"
end
