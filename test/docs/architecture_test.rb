# frozen_string_literal: true

require "test_helper"
require "support/method_graph"
require "support/module_graph"

# Statements of docs/architecture.md about the crates: the modules of the engine, the modules that each one uses, and the
# rule that a layer uses only lower layers.
class ArchitectureTest < Minitest::Test
  include Fairlead::Test::Folders

  LIST = /^#+ Modules of the engine\n(?:(?!#|```).*\n)*```text\n((?:(?!```).*\n)*)```/
  # Every access to Ruby goes through one of these.
  RUBY = /\A(?:fairlead|magnus.*|rb[-_]sys.*)\z/

  def test_the_modules_of_the_engine_use_each_other_as_listed
    list = read("docs/architecture.md")[LIST, 1] || flunk("docs/architecture.md does not list the modules of the engine")

    assert_empty Fairlead::Test::ModuleGraph.new(File.join(ROOT, "crates/engine/src")).differences(list)
  end

  # Folder of a crate => the files of one type that may call each other in a circle; 1 for none.
  LARGEST_CIRCLES = {
    "crates/system" => 1, "crates/wire" => 3, "crates/tls-record" => 3, "crates/engine" => 3, "crates/supervisor" => 1,
    "crates/shared-memory" => 3, "crates/acme" => 3, "crates/load" => 3, "ext/fairlead" => 3
  }.freeze

  LARGEST_CIRCLES.each do |folder, largest|
    define_method(:"test_the_files_of_one_type_form_no_large_circle_in_#{folder.tr("/-", "_")}") do
      circles = Fairlead::Test::MethodGraph.new(File.join(ROOT, folder, "src")).circles

      assert_empty(circles.select { |_, found| found.any? { |circle| circle.size > largest } })
    end
  end

  def test_a_circle_of_files_is_found
    in_folder(
      "lib.rs" => "mod a;\nmod b;\nmod c;\n",
      "a.rs" => "pub struct Part;\nimpl Part {\n    fn a(&self) {\n        self.b();\n    }\n}\n",
      "b.rs" => "impl<'a> super::Part {\n    pub(crate) fn b(&self) {\n        self.c()\n    }\n}\n",
      "c.rs" => "impl Drop for Part {\n    fn c(&self) {\n        self.a(); // self.d()\n    }\n}\n"
    ) { |folder| assert_equal({ "Part" => [%w[a.rs b.rs c.rs]] }, Fairlead::Test::MethodGraph.new(folder).circles) }
  end

  def test_no_crate_knows_ruby
    %w[system wire tls-record engine shared-memory supervisor load acme].each { |crate| assert_empty dependencies(crate).grep(RUBY), crate }
    assert_includes dependencies("../ext/fairlead").grep(RUBY), "magnus"
  end

  def test_the_crates_below_the_engine_and_acme_know_none_of_the_others
    %w[system wire tls-record acme].each { |crate| assert_empty dependencies(crate).grep(/\Afairlead/), crate }
    assert_equal %w[fairlead-system fairlead-tls-record fairlead-wire], dependencies("engine").grep(/\Afairlead/)
    assert_equal %w[fairlead-system], dependencies("load").grep(/\Afairlead/)
  end

  def test_the_supervisor_knows_the_shared_memory_and_the_engine
    assert_equal %w[fairlead-engine fairlead-system], dependencies("shared-memory").grep(/\Afairlead/)
    assert_equal %w[fairlead-engine fairlead-shared-memory fairlead-system], dependencies("supervisor").grep(/\Afairlead/)
  end

  # Only one crate knows that there are several operating systems.
  def test_only_the_crate_system_chooses_by_the_system
    files = Dir.glob("crates/*/{src,tests}/**/*.rs", base: ROOT)
    files = files.select { |path| read(path).match?(/cfg!?\(.*(?:target_os|target_vendor|native_linux)/) }

    assert_equal %w[crates/system], files.map { |path| path[%r{\Acrates/[^/]+}] }.uniq
  end

  def test_unsafe_code_is_in_the_extension_in_the_shared_memory_and_in_the_system
    crates = Dir.glob("crates/*/src/**/*.rs", base: ROOT).select { |path| read(path).match?(/^\s*(?!\/\/).*\bunsafe (?:\{|impl|fn|trait)/) }

    system = %w[datagrams pending_signals poller processes signals].map { |name| "crates/system/src/#{name}.rs" }

    assert_equal ["crates/shared-memory/src/memory_file.rs", *system], crates.sort
  end

  private

  def read(path) = File.read(File.join(ROOT, path))

  # Names under [dependencies], [build-dependencies] and the like; dev-dependencies may include more.
  def dependencies(crate)
    tables = read("crates/#{crate}/Cargo.toml").split(/^\[(.+)\]$/).drop(1).each_slice(2)
    tables.select { |name, _| name.end_with?("dependencies") && !name.end_with?("dev-dependencies") }
          .flat_map { |_, table| table.scan(/^([\w-]+)\s*[.=]/).flatten }
  end
end
