# frozen_string_literal: true

require "test_helper"
require "digest"
require_relative "../../../rakelib/packaging/source_gems"

class SourceGemsTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  # As a checkout has them after umask 077, 022 and 000.
  def test_the_modes_of_a_checkout_do_not_decide_those_of_a_gem
    sums = [[0o600, 0o700], [0o644, 0o755], [0o666, 0o777]].map do |plain, executable|
      Digest::SHA256.file(pack("lib/a.rb" => plain, "exe/a" => executable)).hexdigest
    end

    assert_equal 1, sums.uniq.size
    assert_equal({ "lib/a.rb" => 0o644, "exe/a" => 0o755 }, modes(pack("lib/a.rb" => 0o600, "exe/a" => 0o700)))
  end

  private

  def pack(files)
    paths = files.to_h { |name, mode| [name, write(name, mode)] }
    spec = Gem::Specification.new("a", "1") { |made| made.summary = made.author = made.license = "a" }
    Packaging::SourceGems.pack(spec, paths, File.join(@folder, "pkg"))
  end

  def write(name, mode)
    path = File.join(@folder, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, "# #{name}\n")
    File.chmod(mode, path)
    path
  end

  def modes(gem)
    Gem::Package.new(gem).extract_files(File.join(@folder, "extracted"))
    Gem::Package.new(gem).contents.to_h { |name| [name, File.stat(File.join(@folder, "extracted", name)).mode & 0o777] }
  end
end
