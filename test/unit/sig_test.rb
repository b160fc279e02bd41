# frozen_string_literal: true

require "test_helper"

begin
  require "rbs"
rescue LoadError
  nil # a Ruby without its bundled gems
end

# The signatures must match the existing methods and their parameters.
class SigTest < Minitest::Test
  def setup
    skip "needs the gem rbs" unless defined?(RBS)

    loader = RBS::EnvironmentLoader.new
    loader.add(path: Pathname(File.join(ROOT, "sig")))
    @environment = RBS::Environment.from_loader(loader).resolve_type_names
    @builder = RBS::DefinitionBuilder.new(env: @environment)
  end

  def test_every_class_is_there
    assert_operator names.size, :>, 10
    names.each { |name| assert_kind_of Module, Object.const_get(name.to_s) }
  end

  def test_every_method_is_there_and_takes_the_same_parameters
    names.each do |name|
      type = Object.const_get(name.to_s)
      compare(name, @builder.build_instance(name), ->(method) { type.instance_method(method) })
      compare(name, @builder.build_singleton(name), ->(method) { type.method(method) })
    end
  end

  def test_the_public_methods_of_what_applications_hold_all_have_one
    %i[Server Group Client].each do |name|
      methods = @builder.build_instance(RBS::TypeName.new(name: name, namespace: RBS::Namespace.parse("::Fairlead"))).methods.keys

      assert_empty Fairlead.const_get(name).public_instance_methods(false) - methods
    end
  end

  def test_the_functions_of_the_module_all_have_one
    methods = @builder.build_singleton(RBS::TypeName.new(name: :Fairlead, namespace: RBS::Namespace.root)).methods.keys

    assert_empty Fairlead.public_methods(false) - Module.public_instance_methods - methods
  end

  def test_no_parameter_and_no_result_is_plainly_untyped
    plain = methods.flat_map { |name, method, types| types.map { |type| ["#{name}##{method}", type] } }
                   .select { |_, type| values(type).any?(RBS::Types::Bases::Any) }

    assert_empty plain.map(&:first)
  end

  private

  # [class, method, types] for each method that the signatures define.
  def methods
    names.flat_map do |name|
      [@builder.build_instance(name), @builder.build_singleton(name)].flat_map do |definition|
        definition.methods.select { |_, signature| signature.defined_in == name }
                  .map { |method, signature| [name, method, signature.method_types] }
      end
    end
  end

  # Arguments of a method and its block, and their results.
  def values(type)
    [type.type, type.block&.type].compact.flat_map do |function|
      positionals = [*function.required_positionals, *function.optional_positionals]
      [*positionals, *function.required_keywords.values, *function.optional_keywords.values].map(&:type) << function.return_type
    end
  end

  # A class that needs a missing gem is left out.
  def names
    @environment.class_decls.keys.select { |name| name.to_s.match?(/\A::Fairlead(?:::|\z)/) && loaded?(name) }
  end

  def loaded?(name)
    Object.const_get(name.to_s)
  rescue LoadError => e
    raise unless e.message.include?(": add it to the Gemfile")
  end

  def compare(name, definition, find)
    definition.methods.each do |method, signature|
      next unless signature.defined_in == name && signature.accessibility == :public && method != :new

      parameters = find.call(method).parameters
      next if parameters == [[:rest]] # the extension checks them itself

      signature.method_types.each do |type|
        assert takes?(parameters, type.type), "#{name}##{method} takes #{parameters}, not #{type}"
      end
    end
  end

  # Returns true if a method with these parameters can be called as the signature says.
  def takes?(parameters, type)
    kinds = parameters.group_by(&:first).transform_values { |list| list.map { |_, name| name } }
    kinds.default = []
    positional?(kinds, type) && keywords?(kinds, type)
  end

  def positional?(kinds, type)
    taken = kinds[:req] + kinds[:opt] # nil for a method of the extension, which has no names
    named = (type.required_positionals + type.optional_positionals).map(&:name)
    type.required_positionals.size >= kinds[:req].size && named.size <= taken.size &&
      named.zip(taken).all? { |given, name| name.nil? || given == name }
  end

  def keywords?(kinds, type)
    named = type.required_keywords.keys + type.optional_keywords.keys
    (kinds[:keyreq] - type.required_keywords.keys).empty? &&
      (kinds.key?(:keyrest) || (named - kinds[:keyreq] - kinds[:key]).empty?)
  end
end
