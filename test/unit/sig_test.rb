# frozen_string_literal: true

require "test_helper"

begin
  require "rbs"
rescue LoadError
  nil # a Ruby without its bundled gems
end

# The signatures name what there is, and take what it takes.
class SigTest < Minitest::Test
  PARAMETERS = { required_positionals: :req, optional_positionals: :opt, required_keywords: :keyreq, optional_keywords: :key }.freeze

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
    %i[Server Client].each do |name|
      methods = @builder.build_instance(RBS::TypeName.new(name: name, namespace: RBS::Namespace.parse("::Fairlead"))).methods.keys

      assert_empty Fairlead.const_get(name).public_instance_methods(false) - methods
    end
  end

  def test_the_functions_of_the_module_all_have_one
    methods = @builder.build_singleton(RBS::TypeName.new(name: :Fairlead, namespace: RBS::Namespace.root)).methods.keys

    assert_empty Fairlead.public_methods(false) - Module.public_instance_methods - methods
  end

  private

  def names
    @environment.class_decls.keys.select { |name| name.to_s.start_with?("::Fairlead::") }
  end

  def compare(name, definition, find)
    definition.methods.each do |method, signature|
      next unless signature.defined_in == name && signature.accessibility == :public && method != :new

      expected = parameters_of(signature.method_types.first.type)
      found = find.call(method)
      next if found.parameters == [[:rest]] # the extension looks at them itself

      actual = found.parameters.to_h { |kind, parameter| [parameter, kind] }
      expected.each { |parameter, kind| assert_equal kind, actual[parameter], "#{name}##{method}: #{parameter}" }
    end
  end

  def parameters_of(type)
    PARAMETERS.each_with_object({}) do |(group, kind), found|
      list = type.public_send(group)
      names = list.is_a?(Hash) ? list.keys : list.map(&:name)
      names.each { |name| found[name] = kind }
    end
  end
end
