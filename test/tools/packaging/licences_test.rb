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

  private

  def host = IO.popen(%w[rustc -vV], &:read)[/^host: (.+)/, 1]
end
