# frozen_string_literal: true

require "digest"
require "json"
require "open3"
require_relative "../packaging/linked_works"
require_relative "../packaging/platform_gem"

module SupplyChain
  # The software bill of materials (SBOM) of a gem for one platform, in CycloneDX 1.6: the crates that are compiled into its native files,
  # from Cargo.lock as `cargo metadata` resolves it for one target, the libraries in these crates, what the compilers link, and the gems that
  # it needs at run time. Crates that only run during the build have the scope `excluded`. The same sources make the same text.
  class BillOfMaterials
    ROOT = Packaging::ROOT
    REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"

    # Of the gems for a platform, by the names of the files.
    def self.of(platform, **options)
      gems = Packaging::PlatformGem.new(platform).contents
      gems.to_h { |content| ["#{content.spec.full_name}.cdx.json", new(content, **options)] }
    end

    # +content+: a Packaging::PlatformGem::Content. +time+: seconds since 1970.
    def initialize(content, time: Integer(Packaging::SourceGems.source_date, 10))
      @target = content.target
      @names = content.packages
      @time = Time.at(time).utc
      @gemspec = content.spec
    end

    # The text of the document.
    def to_s
      document = { "bomFormat" => "CycloneDX", "specVersion" => "1.6", "version" => 1 }
      content = { "metadata" => metadata, "components" => [*crates, *linked_works, *gems], "dependencies" => dependencies }
      # A version 8 UUID: ours, from the content.
      number = Digest::SHA256.hexdigest(JSON.generate(content))
      document["serialNumber"] = "urn:uuid:#{number[0, 8]}-#{number[8, 4]}-8#{number[13, 3]}-8#{number[17, 3]}-#{number[20, 12]}"
      "#{JSON.pretty_generate(document.merge(content))}\n"
    end

    private

    def packages = @packages ||= resolved.fetch("packages").to_h { |package| [package.fetch("id"), package] }

    def nodes = @nodes ||= resolved.fetch("resolve").fetch("nodes").to_h { |node| [node.fetch("id"), node.fetch("deps")] }

    def resolved = @resolved ||= read_metadata

    def read_metadata
      command = [ENV.fetch("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked", "--filter-platform", @target]
      output, errors, status = Open3.capture3(*command, chdir: ROOT)
      raise "`#{command.join(" ")}` failed: #{errors}" unless status.success?

      JSON.parse(output)
    end

    # --- the document

    def metadata
      {
        "timestamp" => @time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component" => gem_itself,
        "properties" => tools.map { |name, value| { "name" => name, "value" => value } }
      }
    end

    # With the same ones, anybody builds the same files.
    def tools
      zig = Packaging::Zig::PACKAGES.to_h { |package| package.split("==") }.transform_keys { |name| "fairlead:#{name}" }
      { "cdx:rustc:target" => @target, "fairlead:rustc" => Packaging::LinkedWorks.rust, **zig }
    end

    def gem_itself
      {
        "type" => "application", "bom-ref" => own_reference, "name" => @gemspec.name, "version" => @gemspec.version.to_s,
        "description" => @gemspec.summary, "licenses" => [{ "license" => { "id" => @gemspec.license } }], "purl" => own_reference
      }
    end

    def own_reference = "pkg:gem/#{@gemspec.name}@#{@gemspec.version}?platform=#{@gemspec.platform}"

    def crates
      listed.map { |id| crate(packages.fetch(id), linked.include?(id) ? "required" : "excluded") }
    end

    def crate(package, scope)
      reference = reference(package)
      component = {
        "type" => "library", "bom-ref" => reference, "name" => package.fetch("name"), "version" => package.fetch("version"),
        "scope" => scope, "licenses" => [{ "expression" => license(package) }], "purl" => reference
      }
      checksum = checksums[package.values_at("name", "version")] if package["source"] == REGISTRY
      component["hashes"] = [{ "alg" => "SHA-256", "content" => checksum }] if checksum
      component["externalReferences"] = [{ "type" => "vcs", "url" => package["repository"] }] if package["repository"]
      bundled = Packaging::LinkedWorks.in_crate(package)
      component["components"] = bundled.map { |work| work_component(work) } if bundled.any?
      component
    end

    def linked_works = Packaging::LinkedWorks.of_compilers(@target).map { |work| work_component(work).merge("scope" => "required") }

    def work_component(work)
      reference = ["pkg:generic/#{work.name.downcase}", work.version].compact.join("@")
      { "type" => "library", "bom-ref" => reference, "name" => work.name, "version" => work.version,
        "licenses" => [{ "expression" => work.licence }], "purl" => reference }.compact
    end

    # Old manifests separate licences by a slash.
    def license(package) = package.fetch("license").gsub(%r{\s*/\s*}, " OR ")

    # No version: the user's Bundler chooses one.
    def gems
      @gemspec.runtime_dependencies.map do |dependency|
        {
          "type" => "library", "bom-ref" => "pkg:gem/#{dependency.name}", "name" => dependency.name, "scope" => "required",
          "purl" => "pkg:gem/#{dependency.name}",
          "properties" => [{ "name" => "fairlead:requirement", "value" => dependency.requirement.to_s }]
        }
      end
    end

    def dependencies
      own = built.map { |id| reference(packages.fetch(id)) } + [*linked_works, *gems].map { |component| component["bom-ref"] }
      [{ "ref" => own_reference, "dependsOn" => own.sort }, *listed.map do |id|
        names = edges(id).map { |target, _| reference(packages.fetch(target)) }.uniq.sort
        { "ref" => reference(packages.fetch(id)), "dependsOn" => names }
      end]
    end

    def reference(package) = "pkg:cargo/#{package.fetch("name")}@#{package.fetch("version").sub("+", "%2B")}"

    # --- the graph

    # Ids of everything that is compiled, by name and version.
    def listed
      @listed ||= reached(built) { true }.sort_by { |id| packages.fetch(id).values_at("name", "version") }
    end

    # Ids of what ends up in the binaries: a macro runs in the compiler, a build script before it.
    def linked
      @linked ||= reached(built) { |target, kind| kind.nil? && !macro?(target) }
    end

    def built
      @built ||= @names.map { |name| packages.each_value.find { |package| package["name"] == name && !package["source"] }.fetch("id") }
    end

    def reached(ids)
      found = ids.to_h { |id| [id, true] }
      waiting = ids.dup
      while (id = waiting.shift)
        edges(id).each do |target, kind|
          next if found[target] || !yield(target, kind)

          found[target] = true
          waiting << target
        end
      end
      found.keys
    end

    # The dependencies of a package, but not of its tests: [id, nil or "build"].
    def edges(id)
      nodes.fetch(id).flat_map { |dep| dep.fetch("dep_kinds").map { |kind| [dep.fetch("pkg"), kind["kind"]] } }.reject { |_, kind| kind == "dev" }
    end

    def macro?(id) = packages.fetch(id).fetch("targets").any? { |target| target.fetch("kind").include?("proc-macro") }

    # [name, version] => SHA-256 of the crate, from Cargo.lock.
    def checksums
      @checksums ||= File.read(File.join(ROOT, "Cargo.lock")).scan(/^name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(\h+)"/)
                         .to_h { |name, version, checksum| [[name, version], checksum] }
    end
  end
end
