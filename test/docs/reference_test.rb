# frozen_string_literal: true

require "test_helper"

# The source of the Ruby API reference (`rake docs`): each public method documents its arguments and its result.
class ReferenceTest < Minitest::Test
  OBJECTS = [Fairlead, Fairlead::PubSub].freeze
  CLASSES = [Fairlead::Server, Fairlead::Client, Fairlead::Timer, Fairlead::PubSub::Engine, Fairlead::BindError,
             Fairlead::PidFileError, Fairlead::AppLoadError, Fairlead::ConfigurationError].freeze

  def test_the_files_of_the_reference_exist
    files = File.readlines(File.join(ROOT, ".yardopts"), chomp: true).grep(/\.(?:md|rb)\z/).map { |line| line.split.last }

    assert_operator files.size, :>, 10
    assert_empty(files.reject { |file| File.file?(File.join(ROOT, file)) })
  end

  def test_each_method_names_what_it_takes_and_returns
    methods = OBJECTS.flat_map { |object| object.singleton_methods(false).map { |name| object.method(name) } } +
              CLASSES.flat_map { |type| [:initialize, *type.public_instance_methods(false)].map { |name| type.instance_method(name) } }
    methods.select! { |method| method.source_location&.first.to_s.end_with?(".rb") }

    assert_operator methods.size, :>, 30
    assert_empty(methods.reject { |method| complete?(method) }.map(&:inspect))
  end

  def test_each_method_that_the_extension_gives_to_clients_is_named
    comment = File.read(Fairlead::Client.instance_method(:subscribe).source_location.first)
    native = Fairlead::Client.public_instance_methods(false).reject { |name| Fairlead::Client.instance_method(name).source_location }

    assert_operator native.size, :>, 5
    assert_empty(native.reject { |name| comment.match?(/@!(?:attribute \[\w+\]|method) #{Regexp.escape(name.name.delete_suffix("="))}/) })
  end

  private

  def complete?(method)
    comment = comment_of(method)
    return true if comment.include?("@api private")

    parameters = method.parameters.filter_map { |kind, name| name if %i[req opt key keyreq].include?(kind) }
    (method.name.end_with?("initialize", "=") || comment.include?("@return")) &&
      parameters.all? { |name| comment.match?(/@param #{name} \[/) }
  end

  # Comment lines right above the method.
  def comment_of(method)
    file, line = method.source_location
    lines = File.readlines(file).take(line - 1).reverse
    lines.take_while { |text| text.match?(/\A\s*#/) }.reverse.join
  end
end
