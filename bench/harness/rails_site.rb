# frozen_string_literal: true

require_relative "../../test/support/rails_application"

module Bench
  # The application that the scenario `rails` serves: what `rails new` and a scaffold have generated, with pages of its own
  # (bench/apps/rails) and a database of 100 notes. It is made once in a process and copied for every server.
  class RailsSite < ::Fairlead::Test::RailsApplication
    ROWS = 100

    ROUTES = <<~RUBY
      root to: "notes#index"
      get "list", to: "pages#list"
      get "json", to: "pages#json"
      get "report", to: "pages#report"
    RUBY

    # Path => content, for a server, whose gem is in the bundle.
    def self.for(server)
      gem_line = server.is_a?(Servers::Fairlead) ? "gem 'fairlead', path: #{ROOT.dump}" : "gem '#{server.gem_name}'"
      files.merge("Gemfile" => "#{files.fetch("Gemfile")}#{gem_line}\n")
    rescue Failed => e
      raise Error, e.message
    end

    private

    def fields = %w[title:string body:text]

    def added = File.join(ROOT, "bench/apps/rails")

    def routes = ROUTES

    # Without the server's gem, which `for` adds.
    def bundle(text)
      super.lines.grep_v(/gem 'fairlead'/).join
    end

    # The pages must not grow with the notes that are created, and nobody here speaks TLS. Some versions of Rails leave the
    # database of production to who deploys.
    def make_database
      write("config/database.yml") { |text| text.sub(/^production:.*/m, "production:\n  <<: *default\n  database: db/production.sqlite3\n") }
      write("app/controllers/notes_controller.rb") { |text| text.sub("Note.all", "Note.order(:id).limit(20)") }
      write("config/environments/production.rb") { |text| text.gsub(/^(\s*config\.(?:force|assume)_ssl) = true/, '\1 = false') }
      rails("db:migrate", RAILS_ENV: "production")
      rails("runner", <<~RUBY, RAILS_ENV: "production")
        ActiveRecord::Base.connection.execute("PRAGMA journal_mode = WAL")
        #{ROWS}.times { |number| Note.create!(title: "Note \#{number}", body: "What there is to say of it. " * 4) }
      RUBY
    end
  end
end
