# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "needed_gems"
require_relative "server_process"

module Fairlead
  module Test
    # An application from `rails new` and `rails generate scaffold`, with the tests' own files. It is generated with the
    # installed Rails, once in a process, or once for all test files of a run of bin/support/ruby-tests. Its config/puma.rb
    # stays as generated, and Puma is not in its Gemfile.
    #
    #   RailsApplication.files   # => { "bin/rails" => "#!/usr/bin/env ruby\n…", … }, for ServerProcess
    class RailsApplication
      class Failed < StandardError; end

      ROOT = File.expand_path("../..", __dir__)
      ADDED = File.join(ROOT, "test/integration/rails/shop")

      # Parts that need gems which Debian does not have. Each version of Rails leaves out the parts that it knows.
      SKIPPED = %w[
        bundle git spring listen bootsnap webpack-install javascript turbolinks sprockets hotwire asset-pipeline jbuilder docker rubocop
        brakeman ci dev-gems
      ].freeze

      ROUTES = <<~RUBY
        root to: "notes#index"
        get "live", to: "streams#live"
        get "hints", to: "server#hints"
        get "version", to: "server#version"
        get "server", to: "server#software"
        get "chat", to: "chats#show"
        get "consumer.js", to: "chats#script"
      RUBY

      # Environment of a process that runs Rails beside the checkout, without the bundle of the test run.
      ENVIRONMENT = {
        "RUBYLIB" => File.join(ROOT, "lib"), "RUBYOPT" => ServerProcess::COMPILED, "BUNDLE_GEMFILE" => nil, "RAILS_ENV" => nil, "RACK_ENV" => nil
      }.freeze

      class << self
        # Returns why the application cannot be generated; nil if it can.
        def missing = NeededGems.missing("rails", "sqlite3", "bundler")

        # Path => content of each file.
        def files = @files ||= ENV.key?("FAIRLEAD_TESTS_SHARE") ? shared { new.files } : new.files

        private

        # Returns the result of the block in the first process that asks; the others wait for it.
        def shared
          File.open(File.join(ENV.fetch("FAIRLEAD_TESTS_SHARE"), name), File::RDWR | File::CREAT | File::BINARY) do |file|
            file.flock(File::LOCK_EX)
            return Marshal.load(file.read) if file.size.positive? # rubocop:disable Security/MarshalLoad -- a test has written it

            yield.tap { |files| file.write(Marshal.dump(files)) }
          end
        end
      end

      def files
        Dir.mktmpdir("fairlead-rails-") do |folder|
          @folder = File.join(folder, "shop")
          generate
          names = Dir.glob("**/*", File::FNM_DOTMATCH, base: @folder).select { |name| File.file?(path(name)) }
          names.to_h { |name| [name, File.binread(path(name))] }
        end
      end

      private

      def generate
        run("rails", "new", @folder, "--quiet", *SKIPPED.map { |part| "--skip-#{part}" }, chdir: File.dirname(@folder))
        write("Gemfile") { |text| bundle(text) }
        rails("generate", "scaffold", "note", *fields, "--quiet")
        FileUtils.cp_r("#{added}/.", @folder)
        write("config/routes.rb") { |text| text.sub("resources :notes\n") { |line| line + routes } }
        make_database
      end

      # For applications of other kinds to override: the fields of notes, files, routes, and the database.
      def fields = %w[title:string picture:attachment]

      def added = ADDED

      def routes = ROUTES

      def make_database = rails("active_storage:install", "db:migrate")

      # Reduces the Gemfile to the installed gems, adds this checkout and removes Puma.
      def bundle(text)
        kept = text.lines.reject { |line| (name = line[/^\s*gem ["']([\w-]+)["']/, 1]) && (name == "puma" || !installed?(name)) }
        [*kept.grep_v(/^ruby /), "gem 'fairlead', path: #{ROOT.dump}\n"].join
      end

      def installed?(name) = Gem::Specification.find_all_by_name(name).any?

      def rails(*arguments, **environment) = run(RbConfig.ruby, "bin/rails", *arguments, chdir: @folder, **environment)

      def run(*command, chdir:, **environment)
        output, status = Open3.capture2e(ENVIRONMENT.merge(environment.transform_keys(&:to_s)), *command, chdir: chdir)
        raise Failed, "#{command.join(" ")}: #{status}\n#{output}" unless status.success?
      end

      def write(name) = File.write(path(name), yield(File.read(path(name))))

      def path(name) = File.join(@folder, name)
    end
  end
end
