# frozen_string_literal: true

require_relative "release/steps"

desc "Prepare a release in pkg: checks, changelog, tests, gems of all platforms (or PLATFORMS=a,b), SBOM, checksums. Pushes nothing"
task :release do
  steps = Release::Steps.new
  steps.check
  steps.write_changelog
  steps.test
  steps.clear
  Rake::Task["gem"].invoke
  require_relative "packaging/native_gems"
  (Release::Steps.platforms || Packaging::Platform::ALL.keys).each do |platform|
    Packaging::NativeGems.build(platform)
    Packaging::NativeGems.check(platform)
    Rake::Task["supply_chain:sbom"].tap(&:reenable).invoke(platform)
  end
  steps.write_checksums
  steps.explain
end

namespace :release do
  desc "Check the conditions for a release: a clean checkout, versions and changelog that agree"
  task(:check) { Release::Steps.new.check }
end
