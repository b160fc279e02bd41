# frozen_string_literal: true

require "open3"
require "rexml/document"
require "tmpdir"

# h2spec: a client that tests the rules of RFC 9113 and RFC 7541, each on a connection of its own.
module H2spec
  class Failed < StandardError; end

  COMMAND = File.expand_path("../../../bin/support/h2spec", __dir__)

  # Seconds within which a server has to respond.
  PATIENCE = 10

  # A case: its section in the suite, such as "http2/6.5.3", its title, and its failure, or nil.
  Result = Struct.new(:section, :title, :fault) do
    def name = "#{section} #{title}"
    def to_s = "#{name}: #{fault || "passed"}"
  end

  # Returns the reason why the suite cannot run on this machine; nil if it can.
  def self.unavailable
    return @unavailable if defined?(@unavailable)

    output, status = Open3.capture2e(COMMAND, "--version")
    @unavailable = status.success? ? nil : output.strip
  end

  # Runs all cases against this port of the machine; returns a Result for each.
  def self.try(port, tls:)
    Dir.mktmpdir("h2spec-") do |folder|
      report = File.join(folder, "report.xml")
      secured = tls ? %w[--tls --insecure] : []
      log, = Open3.capture2e(COMMAND, "--strict", "-h", "127.0.0.1", "-p", port.to_s, "-o", PATIENCE.to_s, "-j", report, *secured)
      raise Failed, "h2spec has written no report\n#{log}" unless File.size?(report)

      REXML::Document.new(File.read(report)).get_elements("//testcase").map { |element| result(element) }
    end
  end

  # A passed case is an empty element; a skipped one has not passed.
  def self.result(element)
    faults = element.elements.map { |inside| "#{inside.name}: #{inside.text.to_s.squeeze(" \n").strip}" }
    Result.new(element["package"], element["classname"], faults.first)
  end
  private_class_method :result
end
