# frozen_string_literal: true

require "fileutils"
require_relative "command"

module Packaging
  # Debian's packages of several releases and architectures, from the mirror of this machine, without touching its own lists.
  module DebianPackages
    # Each Ruby is in one of them.
    SUITES = %w[bookworm trixie sid experimental].freeze
    FOLDER = File.join(CACHE, "apt")
    A_DAY = 24 * 60 * 60

    module_function

    # +names+: such as "ruby3.4-dev:arm64".
    def download(names, place)
      update
      Command.output("apt-get", *options, "-qq", "download", *names, chdir: place)
    end

    # A mirror forgets packages that have a newer version.
    def update
      updated = File.join(FOLDER, "updated")
      return if File.exist?(updated) && Time.now - File.mtime(updated) < A_DAY

      FileUtils.mkdir_p(%w[lists/partial cache/archives/partial state].map { |name| File.join(FOLDER, name) })
      File.write(File.join(FOLDER, "status"), "")
      File.write(File.join(FOLDER, "sources.list"), SUITES.map { |suite| "deb [signed-by=#{keys}] #{mirror} #{suite} main\n" }.join)
      Command.output("apt-get", *options, "-qq", "update")
      File.write(updated, "")
    end

    def mirror
      release = File.read("/etc/os-release")[/^VERSION_CODENAME=(\w+)/, 1]
      lines = Command.output("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages").lines.map(&:split)
      lines.rassoc(release)&.first or raise Impossible, "apt on this machine has no mirror of Debian"
    end

    def keys = Dir.glob("/usr/share/keyrings/debian-archive-keyring.{pgp,gpg}").first || raise(Impossible, "there is no debian-archive-keyring")

    def options
      settings = {
        "Dir::State" => "state", "Dir::State::Lists" => "lists", "Dir::State::status" => "status", "Dir::Cache" => "cache",
        "Dir::Etc::SourceList" => "sources.list"
      }.transform_values { |name| File.join(FOLDER, name) }
      settings["Dir::Etc::SourceParts"] = File::NULL
      settings["APT::Sandbox::User"] = "root"
      architectures = %w[amd64 arm64].map { |name| "APT::Architectures::=#{name}" }
      [*settings.map { |name, value| "#{name}=#{value}" }, *architectures].flat_map { |setting| ["-o", setting] }
    end
    private_class_method :update, :mirror, :keys, :options
  end
end
