# frozen_string_literal: true

require "test_helper"
require "support/module_graph"

# The judge of test/docs/architecture_test.rb: the uses that it finds in Rust files, and the differences from a list.
class ModuleGraphTest < Minitest::Test
  include Fairlead::Test::Folders

  Source = Fairlead::Test::RustSource

  # `lib.rs` is empty, unless +files+ has one.
  def differences(list, files)
    in_folder({ "lib.rs" => "" }.merge(files)) { |folder| Fairlead::Test::ModuleGraph.new(folder).differences(list) }
  end

  def paths(text, depth: 1) = Source.new(text, depth: depth).paths

  def test_a_list_that_says_what_is_there_is_right
    files = { "clock.rs" => "", "queue.rs" => "use crate::clock::now;", "engine/mod.rs" => "use crate::queue::Queue;\nuse crate::clock;" }

    assert_empty differences("clock\nqueue -> clock\nengine -> clock, queue\n", files)
  end

  def test_a_use_that_is_not_listed_is_found
    files = { "clock.rs" => "", "engine/mod.rs" => "mod deep;", "engine/deep.rs" => "fn f() { crate::clock::now() }" }

    assert_equal ["engine -> clock is not listed: engine/deep.rs"], differences("clock\nengine", files)
  end

  def test_an_arrow_that_nothing_uses_is_found
    assert_equal ["engine -> clock is listed and not used"], differences("clock\nengine -> clock", "clock.rs" => "", "engine.rs" => "")
  end

  def test_a_cycle_cannot_be_listed
    files = { "clock.rs" => "use crate::engine::Engine;", "engine.rs" => "use crate::clock::now;" }

    assert_equal ["engine does not stand above clock"], differences("clock -> engine\nengine -> clock", files)
    assert_equal ["clock does not stand above engine"], differences("engine -> clock\nclock -> engine", files)
  end

  def test_every_module_is_listed_and_nothing_else
    files = { "clock.rs" => "", "engine/mod.rs" => "" }

    assert_equal ["engine is not listed", "wheel is listed and is no module"], differences("clock\nwheel", files)
  end

  def test_a_name_that_the_crate_passes_on_belongs_to_its_module
    files = { "lib.rs" => "pub use clock::{now as time, Clock};\npub use other::Other;", "clock.rs" => "",
              "engine.rs" => "use crate::{time, Clock};" }

    assert_equal ["engine -> clock is not listed: engine.rs"], differences("clock\nengine", files)
    files["engine.rs"] = "use crate::Unknown;"

    assert_includes differences("clock\nengine", files), "engine -> Unknown is not listed: engine.rs"
  end

  def test_modules_that_are_for_tests_only_are_left_out
    files = { "lib.rs" => "#[cfg(test)]\nmod fault;\nmod clock;", "fault.rs" => "use crate::clock::now;",
              "clock.rs" => "#[cfg(test)]\nmod tests;", "clock/tests.rs" => "use crate::fault::Fault;" }

    assert_empty differences("clock", files)
  end

  def test_groups_over_several_lines_are_read
    text = "use crate::{\n    clock::{self, now},\n    engine::{Engine, queue::{Job, Queue}},\n    App,\n};"

    assert_equal %w[clock::self clock::now engine::Engine engine::queue::Job engine::queue::Queue App], paths(text)
  end

  def test_paths_in_code_are_read_and_others_are_not
    text = "fn f(x: crate::clock::Time) -> std::io::Result<()> { let y = crate :: engine::run(x); other_crate::z(); }"

    assert_equal %w[clock::Time engine::run], paths(text)
  end

  def test_paths_that_reach_the_crate_from_below_are_read
    assert_equal %w[clock::now], paths("use super::clock::now;")
    assert_equal %w[clock::now], paths("use super::super::clock::now;\nuse super::sibling;", depth: 2)
    assert_equal %w[a b::c], paths("use super::{a, b::c};")
  end

  def test_comments_and_strings_are_not_code
    text = <<~RUST
      // use crate::a::A;
      /* use crate::b::B; /* nested */ use crate::c::C; */
      fn f<'a>(x: &'a str) -> char { g("crate::d::D \\" // crate::e", r#"" crate::f"#); '"' }
      use crate::g::G; // "
    RUST

    assert_equal %w[g::G], paths(text)
  end

  def test_what_is_compiled_for_tests_is_left_out
    text = <<~RUST
      #[cfg(test)]
      use crate::{a::A, b};
      struct S { #[cfg(test)] faults: crate::c::Faults, x: crate::d::D }
      #[cfg(test)]
      #[allow(dead_code)]
      pub(crate) fn f(x: [u8; 3]) -> bool { if g() { crate::e::e() } else { false } }
      #[cfg(not(test))]
      use crate::f::F;
      fn h() -> S { S { #[cfg(test)] faults: crate::c::Faults::default(), x: crate::g::g() } }
      #[cfg(test)]
      mod tests { use crate::h::H; mod deeper { use crate::i::I; } }
      use crate::j::J;
    RUST

    assert_equal %w[d::D f::F g::g j::J], paths(text)
  end
end
