# frozen_string_literal: true

# What a restart is to change.
Rails.configuration.x.version = Rails.root.join("version").read.strip
