# frozen_string_literal: true

# Changes with a restart.
Rails.configuration.x.version = Rails.root.join("version").read.strip
