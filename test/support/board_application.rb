# frozen_string_literal: true

require "support/rails_application"

module Fairlead
  module Test
    # The generated application with a page of Turbo streams (board), for the installed turbo-rails.
    class BoardApplication < RailsApplication
      ROUTES = <<~RUBY
        root to: "notes#index"
        resource :board, only: %i[show create]
        get "turbo.js", to: "boards#script"
      RUBY

      def self.missing = super || NeededGems.missing("turbo-rails")

      private

      def fields = %w[text:string]

      def added = File.join(__dir__, "board")

      def routes = ROUTES

      def bundle(text) = "#{super}gem 'turbo-rails'\n"

      def make_database = rails("db:migrate")
    end
  end
end
