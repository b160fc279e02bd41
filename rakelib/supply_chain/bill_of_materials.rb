# frozen_string_literal: true

require "digest"
require "json"
require "open3"

module SupplyChain
  # The software bill of materials (SBOM) of the gem, in CycloneDX 1.6: the crates that are compiled into the extension and the native
  # programs, from Cargo.lock as `cargo metadata` resolves it for one target, and the gems that they need at run time. Crates that only
  # run during the build have the scope `excluded`. The same sources make the same text.
  class BillOfMaterials
    ROOT = File.expand_path("../..", __dir__)
    # The crates that the gem builds, as in ext/fairlead/extconf.rb.
    BUILT = %w[fairlead fairlead-supervisor fairlead-acme].freeze
    REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"

    # +target+: a triple of rustc. +time+: seconds since 1970, as in SOURCE_DATE_EPOCH.
    def initialize(target, time: Integer(ENV.fetch("SOURCE_DATE_EPOCH", 0)), gemspec: Gem::Specification.load(File.join(ROOT, "fairlead.gemspec")))
      @target = target
      @time = Time.at(time).utc
      @gemspec = gemspec
      metadata = read_metadata
      @packages = metadata.fetch("packages").to_h { |package| [package.fetch("id"), package] }
      @nodes = metadata.fetch("resolve").fetch("nodes").to_h { |node| [node.fetch("id"), node.fetch("deps")] }
    end

    # The text of the document.
    def to_s
      document = { "bomFormat" => "CycloneDX", "specVersion" => "1.6", "version" => 1 }
      content = { "metadata" => metadata, "components" => [*crates, *gems], "dependencies" => dependencies }
      # A version 8 UUID: ours, from the content.
      number = Digest::SHA256.hexdigest(JSON.generate(content))
      document["serialNumber"] = "urn:uuid:#{number[0, 8]}-#{number[8, 4]}-8#{number[13, 3]}-8#{number[17, 3]}-#{number[20, 12]}"
      "#{JSON.pretty_generate(document.merge(content))}\n"
    end

    private

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
        "properties" => [{ "name" => "cdx:rustc:target", "value" => @target }]
      }
    end

    def gem_itself
      {
        "type" => "application", "bom-ref" => own_reference, "name" => @gemspec.name, "version" => @gemspec.version.to_s,
        "description" => @gemspec.summary, "licenses" => [{ "license" => { "id" => @gemspec.license } }], "purl" => own_reference
      }
    end

    def own_reference = "pkg:gem/#{@gemspec.name}@#{@gemspec.version}"

    def crates
      listed.map { |id| crate(@packages.fetch(id), linked.include?(id) ? "required" : "excluded") }
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
      bundled = bundled(package)
      component["components"] = [bundled] if bundled
      component
    end

    # The C library in the sources of a crate, if its version names the library: "2.1.2+zstd.1.5.7".
    def bundled(package)
      name, version = package.fetch("version")[/\+(.*)\z/, 1]&.split(".", 2)
      return unless version

      reference = "pkg:generic/#{name}@#{version}"
      { "type" => "library", "bom-ref" => reference, "name" => name, "version" => version, "purl" => reference }
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
      own = built.map { |id| reference(@packages.fetch(id)) } + gems.map { |component| component["bom-ref"] }
      [{ "ref" => own_reference, "dependsOn" => own.sort }, *listed.map do |id|
        names = edges(id).map { |target, _| reference(@packages.fetch(target)) }.uniq.sort
        { "ref" => reference(@packages.fetch(id)), "dependsOn" => names }
      end]
    end

    def reference(package) = "pkg:cargo/#{package.fetch("name")}@#{package.fetch("version").sub("+", "%2B")}"

    # --- the graph

    # Ids of everything that is compiled, by name and version.
    def listed
      @listed ||= reached(built) { true }.sort_by { |id| @packages.fetch(id).values_at("name", "version") }
    end

    # Ids of what ends up in the binaries: a macro runs in the compiler, a build script before it.
    def linked
      @linked ||= reached(built) { |target, kind| kind.nil? && !macro?(target) }
    end

    def built
      @built ||= BUILT.map { |name| @packages.each_value.find { |package| package["name"] == name && !package["source"] }.fetch("id") }
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
      @nodes.fetch(id).flat_map { |dep| dep.fetch("dep_kinds").map { |kind| [dep.fetch("pkg"), kind["kind"]] } }.reject { |_, kind| kind == "dev" }
    end

    def macro?(id) = @packages.fetch(id).fetch("targets").any? { |target| target.fetch("kind").include?("proc-macro") }

    # [name, version] => SHA-256 of the crate, from Cargo.lock.
    def checksums
      @checksums ||= File.read(File.join(ROOT, "Cargo.lock")).scan(/^name = "(.+)"\nversion = "(.+)"\nsource = .+\nchecksum = "(\h+)"/)
                         .to_h { |name, version, checksum| [[name, version], checksum] }
    end
  end
end
