# frozen_string_literal: true

require "digest"
require "json"
require "net/http"

module Release
  # Pushes the gems that SHA256SUMS lists to the gem server, and can be repeated: a gem that the server has is left out. The gems that
  # compile come first, so that a system without a built gem finds one at any time.
  class Push
    class Failed < StandardError; end

    # +packages+: the folder with the gems and SHA256SUMS.
    def initialize(packages, host: ENV.fetch("RUBYGEMS_HOST", "https://rubygems.org"))
      @packages = packages
      @host = host
    end

    def run
      different = sums.reject { |name, sum| File.file?(path(name)) && Digest::SHA256.file(path(name)).hexdigest == sum }
      raise Failed, "#{different.keys.join(", ")}: not the file that SHA256SUMS names" if different.any?

      gems.each { |name| push(name) }
    end

    # Without a platform, the name ends with the version.
    def gems = sums.keys.grep(/\.gem\z/).partition { |name| name.match?(/-\d[\d.a-z]*\.gem\z/) }.flatten

    private

    def path(name) = File.join(@packages, name)

    def sums = @sums ||= File.readlines(path("SHA256SUMS"), chomp: true).to_h { |line| line.split("  ", 2).reverse }

    def push(name)
      return puts("#{name} is published already") if published(name[/\A(.+?)-\d/, 1]).include?(sums.fetch(name))

      system("gem", "push", "--host", @host, path(name)) or raise Failed, "`gem push #{name}` failed; `rake release:push` can be repeated"
    end

    # SHA-256 of all gems with this name.
    def published(gem)
      response = Net::HTTP.get_response(URI("#{@host}/api/v1/versions/#{gem}.json"))
      return [] if response.is_a?(Net::HTTPNotFound)
      raise Failed, "#{@host} says #{response.code} about the versions of #{gem}" unless response.is_a?(Net::HTTPSuccess)

      JSON.parse(response.body).map { |version| version["sha"] }
    end
  end
end
