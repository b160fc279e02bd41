# frozen_string_literal: true

require "json"
require "open3"
require "yaml"

module Desync
  # A request of http_desync_guardian: the bytes on the wire, and the authors' classification.
  class Case
    attr_reader :suite, :name, :tier

    def initialize(suite, entry)
      @suite = suite
      @name = entry.fetch("name")
      @tier = entry.fetch("expected").fetch("tier")
      @request_line = [entry["method"], entry["uri"], entry["version"]].reject.with_index { |part, i| i == 2 && part.empty? }
      @fields = entry["headers"].is_a?(Array) ? entry["headers"].map { |field| field.values_at("name", "value") } : []
    end

    # Head and body. The cases have no Host, which is irrelevant to them, so this adds one. They have no body either; this
    # adds one of the length that a lenient parser reads from the framing. Otherwise a server that waits for the body would
    # seem to refuse the request.
    def to_s
      fields = [%w[Host example.com], *@fields]
      head = [@request_line.join(" "), *fields.map { |name, value| "#{name}: #{value}" }, "", ""].join("\r\n")
      octets(head) + body
    end

    private

    # "\xa0" in these files means the byte, but YAML reads it as the character.
    def octets(text)
      text.each_char.map { |char| char.ord < 256 ? char.ord.chr : char.b }.join.b
    end

    def body
      framing = @fields.to_h.transform_keys(&:downcase)
      return "0\r\n\r\n".b if framing.keys.any? { |name| name.include?("transfer") }

      "x".b * Integer(framing["content-length"].to_s[/\A\s*(\d{1,7})\s*\z/, 1] || "0", 10)
    end
  end

  MANIFEST = File.expand_path("Cargo.toml", __dir__)

  class << self
    def cases
      @cases ||= Dir.glob(File.join(folder, "*.yaml")).sort.flat_map do |path|
        document = YAML.parse(File.read(path, encoding: "UTF-8"))
        document ? plain(document.root).map { |entry| Case.new(File.basename(path, ".yaml"), entry) } : []
      end
    end

    private

    # Folder of the crate in Cargo's cache. Cargo downloads it if necessary.
    def folder
      command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", MANIFEST]
      output, errors, status = Open3.capture3(*command)
      raise "#{command.join(" ")} failed:\n#{errors}" unless status.success?

      crate = JSON.parse(output).fetch("packages").find { |package| package["name"] == "http_desync_guardian" }
      File.join(File.dirname(crate.fetch("manifest_path")), "tests")
    end

    # Values as written: YAML's own conversion turns `1000,1000` into a number.
    def plain(node)
      case node
      when Psych::Nodes::Mapping then node.children.each_slice(2).to_h { |key, value| [key.value, plain(value)] }
      when Psych::Nodes::Sequence then node.children.map { |child| plain(child) }
      else node.value
      end
    end
  end
end
