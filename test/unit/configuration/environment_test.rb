# frozen_string_literal: true

require "test_helper"

class ConfigurationEnvironmentTest < Minitest::Test
  Fairlead::Options.each do |entry|
    entry.variables.each do |name|
      define_method(:"test_#{name}_sets_#{entry.name}") do
        layer = read(name => " #{entry.valid.first} ")

        assert_equal entry.expand(entry.valid.first.to_s), layer.settings.transform_values(&:value)
        assert_equal [name], layer.settings.values.map(&:origin).uniq
      end
    end
  end

  def test_a_blank_variable_counts_as_none
    assert_empty read("WEB_CONCURRENCY" => " ", "PORT" => "").settings
  end

  def test_the_first_of_several_variables_counts
    assert_equal 4, read("RAILS_MAX_THREADS" => "4", "MAX_THREADS" => "9", "FAIRLEAD_MAX_THREADS" => "")[:max_threads]
  end

  private

  def read(variables)
    Fairlead::Configuration::Environment.read(variables)
  end
end
