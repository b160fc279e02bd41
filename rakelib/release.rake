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
  steps.check_unchanged
  steps.write_checksums
  steps.explain
end

namespace :release do
  desc "Check the conditions for a release: a clean checkout, versions and changelog that agree. With TAG, it has to be this one"
  task(:check) { Release::Steps.new.check(ENV.fetch("TAG", nil)) }

  desc "Write pkg/SHA256SUMS"
  task(:checksums) { Release::Steps.new.write_checksums }

  desc "Push the gems that pkg/SHA256SUMS lists, but not those that are published already"
  task :push do
    require_relative "release/push"
    Release::Push.new(Release::Steps::PACKAGES).run
  rescue Release::Push::Failed => e
    abort "release: #{e.message}"
  end
end
