# frozen_string_literal: true

# What an application can do to have public/large.bin sent, and a short answer for who asks for anything else.
PATH = File.expand_path("public/large.bin", __dir__).freeze
SIZE = File.size(PATH).to_s.freeze
SHORT = "#{"x" * 120}\n".freeze
TYPE = { "content-type" => "application/octet-stream" }.freeze

# A body that says where the file is, and no more.
module Place
  def self.to_path
    PATH
  end

  def self.each
    raise "what has a path is not asked for its bytes"
  end
end

run(lambda do |env|
  case env["PATH_INFO"]
  when "/file" then [200, TYPE.merge("content-length" => SIZE), File.open(PATH, "rb")]
  when "/to_path" then [200, TYPE.merge("content-length" => SIZE), Place]
  when "/sendfile" then [200, TYPE.merge("x-sendfile" => PATH), []]
  else [200, { "content-type" => "text/plain" }, [SHORT]]
  end
end)
