# frozen_string_literal: true

require "test_helper"
require_relative "../../rakelib/docs/migration_guide"

class MigrationGuideTest < Minitest::Test
  Guide = Docs::MigrationGuide

  def test_the_document_has_the_table_of_today
    text = File.read(File.join(ROOT, "docs/guides/migrating_from_puma.md"))

    assert_equal Guide.update(text), text, "docs/guides/migrating_from_puma.md is out of date: rake docs:configuration"
    assert_includes text, Guide.table
  end

  def test_every_method_of_the_table_is_one_of_the_file
    assert_empty Guide::METHODS.values.flatten - Fairlead::Configuration::Script.public_instance_methods
  end

  def test_every_name_of_puma_is_in_the_table
    names = Fairlead::Hooks::NAMES.keys + Fairlead::Hooks::ALIASES.keys + Fairlead::Configuration::PumaMethods.instance_methods(false) +
            Fairlead::Configuration::Accepted.map(&:name)

    assert_empty names - Guide::METHODS.values.flatten - %i[require persistent_connections tcp_mode!]
    assert_empty Guide::DIFFERENCES.keys - Guide::METHODS.values.flatten
  end

  def test_each_row_says_what_becomes_of_the_method
    { "| `workers` | the same |" => true, "| `pidfile` | `pid_file` |" => true, "| `on_worker_boot` | `before_worker_boot` |" => true,
      "| `daemonize` | no effect | Fairlead stays in the foreground" => true, "| `nothing`" => false }
      .each { |row, expected| assert_equal expected, Guide.table.include?(row), row }
  end
end
