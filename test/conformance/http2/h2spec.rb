# frozen_string_literal: true

require "open3"
require "rexml/document"
require "tmpdir"

# h2spec: a client that tries what RFC 9113 and RFC 7541 allow and forbid, each in a connection of its own.
module H2spec
  class Failed < StandardError; end

  COMMAND = File.expand_path("../../../bin/support/h2spec", __dir__)

  # Seconds within which a server has to respond.
  PATIENCE = 10

  # A case: its section in the suite, such as "http2/6.5.3", what it does, and what went wrong; nil if nothing did.
  Result = Struct.new(:section, :title, :fault) do
    def name = "#{section} #{title}"
    def to_s = "#{name}: #{fault || "passed"}"
  end

  # Why the suite cannot run on this machine; nil when it can.
  def self.unavailable
    return @unavailable if defined?(@unavailable)

    output, status = Open3.capture2e(COMMAND, "--version")
    @unavailable = status.success? ? nil : output.strip
  end

  # Tries all cases on the port of this machine; returns a Result for each.
  def self.try(port, tls:)
    Dir.mktmpdir("h2spec-") do |folder|
      report = File.join(folder, "report.xml")
      secured = tls ? %w[--tls --insecure] : []
      log, = Open3.capture2e(COMMAND, "--strict", "-h", "127.0.0.1", "-p", port.to_s, "-o", PATIENCE.to_s, "-j", report, *secured)
      raise Failed, "h2spec has left no report\n#{log}" unless File.size?(report)

      REXML::Document.new(File.read(report)).get_elements("//testcase").map { |element| result(element) }
    end
  end

  # A case that passes has nothing inside; one that was skipped has not passed.
  def self.result(element)
    faults = element.elements.map { |inside| "#{inside.name}: #{inside.text.to_s.squeeze(" \n").strip}" }
    Result.new(element["package"], element["classname"], faults.first)
  end
  private_class_method :result
end
