# frozen_string_literal: true

require "test_helper"
require "json"
require_relative "../../rakelib/supply_chain/bill_of_materials"

class BillOfMaterialsTest < Minitest::Test
  SERVER = "fairlead-#{Fairlead::VERSION}-x86_64-linux-gnu.cdx.json".freeze
  LOAD_TOOL = "fairlead-load-#{Fairlead::VERSION}-x86_64-linux.cdx.json".freeze

  def test_every_crate_that_is_compiled_is_listed_with_its_checksum
    required, excluded = crates.partition { |component| component["scope"] == "required" }.map { |all| all.map { |component| component["name"] } }

    assert_empty %w[fairlead fairlead-supervisor fairlead-wire rustls ring magnus rb-sys zstd-sys h2] - required
    assert_empty %w[bindgen cc serde_derive] - excluded
    assert_empty(%w[minitest shuttle tokio-macros] & (required + excluded)) # of tests
    foreign = crates.reject { |component| component["name"].start_with?("fairlead") }
    assert(foreign.all? { |component| component.dig("hashes", 0, "content")&.match?(/\A\h{64}\z/) })
  end

  def test_a_library_in_a_crate_and_the_gems_are_listed
    zstd = crates.find { |component| component["name"] == "zstd-sys" }

    assert_match(%r{\Apkg:generic/zstd@\d+\.\d+\.\d+\z}, zstd.dig("components", 0, "purl"))
    assert_equal ["pkg:gem/rack"], document["components"].map { |component| component["purl"] }.grep(/\Apkg:gem/)
  end

  def test_what_the_compilers_link_is_listed_as_in_the_licences
    assert_equal %w[compiler-rt libunwind rust-std], generic(document).sort
    assert_equal %w[compiler-rt libunwind musl rust-std], generic(document(LOAD_TOOL)).sort
    assert_equal(%w[BoringSSL fiat-crypto once_cell],
                 crates.find { |crate| crate["name"] == "ring" }["components"].map { |component| component["name"] })
  end

  def test_each_gem_of_a_platform_has_one
    load_tool = document(LOAD_TOOL)

    assert_equal [SERVER, "fairlead-#{Fairlead::VERSION}-x86_64-linux.cdx.json", LOAD_TOOL], bills.keys
    assert_equal "pkg:gem/fairlead-load@#{Fairlead::VERSION}?platform=x86_64-linux", load_tool.dig("metadata", "component", "purl")
    assert_includes load_tool["components"].map { |component| component["name"] }, "clap"
    refute_includes load_tool["components"].map { |component| component["name"] }, "magnus"
    assert_equal "x86_64-unknown-linux-musl", load_tool.dig("metadata", "properties", 0, "value")
  end

  def test_every_reference_exists_once
    references = [document.dig("metadata", "component"), *document["components"]].map { |component| component["bom-ref"] }

    assert_equal references.uniq, references
    assert_empty(document["dependencies"].flat_map { |entry| [entry["ref"], *entry["dependsOn"]] }.uniq - references)
  end

  def test_the_same_sources_make_the_same_text
    texts = Array.new(2) { bills(time: 1_700_000_000).fetch(LOAD_TOOL).to_s }

    assert_equal(*texts)
    assert_equal "2023-11-14T22:13:20Z", JSON.parse(texts.first).dig("metadata", "timestamp")
    refute_equal texts.first, bills(time: 1_700_000_001).fetch(LOAD_TOOL).to_s
    refute_includes texts.first, ROOT
  end

  private

  def document(name = SERVER) = (@documents ||= {})[name] ||= JSON.parse((@bills ||= bills).fetch(name).to_s)

  def crates = document["components"].select { |component| component["purl"].start_with?("pkg:cargo/") }

  def generic(document)
    document["components"].select { |component| component["purl"].start_with?("pkg:generic/") }.map { |component| component["name"] }
  end

  def bills(**options) = SupplyChain::BillOfMaterials.of(Packaging::Platform::ALL.fetch("x86_64-linux-gnu"), **options)
end
