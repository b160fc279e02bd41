# frozen_string_literal: true

require "test_helper"
require_relative "../../../rakelib/packaging/licences"

class LicencesTest < Minitest::Test
  def test_linked_crates_are_named_and_those_of_tests_and_of_this_project_are_not
    names = Packaging::Licences.new(%w[fairlead-load], host).crates.map { |crate| crate["name"] }

    assert_includes names, "rustls"
    assert_includes names, "clap"
    assert_empty names & %w[rcgen shuttle magnus fairlead-load]
  end

  def test_each_linked_crate_has_the_text_of_its_licence
    licences = Packaging::Licences.new(%w[fairlead fairlead-supervisor fairlead-acme fairlead-load], host)
    works = licences.works

    assert_operator works.size, :>, 100
    assert_empty(works.select { |work| work.texts.none? { |text| text.size > 400 } }.map(&:title))
  end

  def test_libraries_in_crates_are_named_with_their_texts_and_no_licence_that_was_not_chosen
    works = Packaging::Licences.new(%w[fairlead-load fairlead], host).works.to_h { |work| [work.title[/\S+/], work.texts.join] }

    assert_includes works["ring"], "the fiat-crypto authors"
    assert_includes works["zstd-sys"], "Meta Platforms"
    refute_includes works["zstd-sys"], "GNU GENERAL PUBLIC LICENSE"
  end

  def test_a_licence_without_a_text_names_its_holder
    text = Packaging::Licences.mit("Someone")

    assert_match(/^Copyright \(c\) Someone$/, text)
    refute_includes text, "Fairlead"
  end

  def test_the_standard_library_has_its_copyright_notices_and_those_of_its_crates
    Dir.mktmpdir do |sysroot|
      page(sysroot)
      texts = Packaging::StandardLibrary.new(sysroot).texts

      assert_includes texts, "In-tree files\n\nCopyright: A & B"
      assert_includes texts, "gimli-0.32.3\nMIT <text>"
      assert_empty texts.grep(/windows/)
    end
  end

  def test_debians_standard_library_has_debians_notices
    Dir.mktmpdir do |sysroot|
      FileUtils.mkdir_p(File.join(sysroot, "share/doc/rustc"))
      File.write(File.join(sysroot, "share/doc/rustc/copyright"), "of Debian")

      assert_equal ["of Debian"], Packaging::StandardLibrary.new(sysroot).texts
      FileUtils.rm_rf(File.join(sysroot, "share"))
      assert_raises(Packaging::Impossible) { Packaging::StandardLibrary.new(sysroot).texts }
    end
  end

  private

  def page(sysroot)
    FileUtils.mkdir_p(File.join(sysroot, "share/doc/rust/licenses"))
    File.write(File.join(sysroot, "share/doc/rust/licenses/Unicode-3.0.txt"), "of Unicode")
    File.write(File.join(sysroot, "share/doc/rust/COPYRIGHT-library.html"), <<~HTML)
      <h1>Notices</h1><h2 id="in-tree-files">In-tree files</h2>


      <p>Copyright: A &amp; B</p>
      <h3>📦 gimli-0.32.3</h3>
      <pre>MIT &lt;text&gt;</pre>
      <h3>📦 windows_x86_64-0.1.0</h3>
    HTML
  end

  def host = IO.popen(%w[rustc -vV], &:read)[/^host: (.+)/, 1]
end
