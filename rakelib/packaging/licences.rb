# frozen_string_literal: true

require "json"
require_relative "build"
require_relative "command"
require_relative "zig"

module Packaging
  # The licences of all crates in the files of a gem, and of the C libraries and standard library that are linked into them: the text of
  # LICENSE-THIRD-PARTY. Their authors ask for it beside every copy.
  class Licences
    FILES = /\A(?:licen[sc]e|copying|notice|unlicense|copyright)/i

    # Folders of C libraries within crates.
    BUNDLED = { "zstd-sys" => %w[zstd], "ring" => %w[third_party/fiat] }.freeze

    # +title+: name and version. +licence+: in SPDX's words. +texts+: the files of the work.
    Work = Struct.new(:title, :licence, :texts)

    # +packages+: names of packages of the workspace.
    def initialize(packages, target)
      @packages = packages
      @target = target
    end

    def text
      works = self.works + linked
      groups = works.flat_map { |work| work.texts.map { |text| [text, work.title] } }.group_by(&:first)
      <<~TEXT
        The native files of this gem contain these works under these licences:

        #{works.map { |work| "  #{work.title}: #{work.licence}" }.join("\n")}

        #{groups.map { |text, pairs| "#{"-" * 80}\n#{pairs.map(&:last).uniq.join(", ")}\n\n#{text.strip}\n" }.join("\n")}
      TEXT
    end

    # Of registries, in the order of their names.
    def crates
      @crates ||= reachable.map { |id| metadata[:packages].fetch(id) }.select { |package| package["source"] }
                           .sort_by { |package| package.values_at("name", "version") }
    end

    # The crates, each with its licence.
    def works = crates.map { |crate| work_of(crate) }

    private

    # The crates that the packages link, without the dependencies of builds and tests.
    def reachable
      found = {}
      own = metadata[:packages].values.select { |package| !package["source"] && @packages.include?(package["name"]) }
      waiting = own.map { |package| package["id"] }
      while (id = waiting.shift)
        next if found[id]

        found[id] = true
        linked = metadata[:nodes].fetch(id)["deps"].select { |dep| dep["dep_kinds"].any? { |kind| kind["kind"].nil? } }
        waiting.concat(linked.map { |dep| dep["pkg"] })
      end
      found.keys
    end

    def metadata
      @metadata ||= begin
        command = %W[cargo metadata --format-version 1 --locked --filter-platform #{@target}]
        document = JSON.parse(IO.popen(command, chdir: ROOT, err: File::NULL, &:read))
        { packages: document["packages"].to_h { |package| [package["id"], package] },
          nodes: document["resolve"]["nodes"].to_h { |node| [node["id"], node] } }
      end
    end

    def work_of(crate)
      texts = texts_of(crate)
      texts = siblings(crate).flat_map { |sibling| texts_of(sibling) } if texts.empty?
      texts = standard_texts(crate) if texts.empty?
      Work.new("#{crate["name"]} #{crate["version"]}", crate["license"] || "see below", texts)
    end

    def texts_of(crate)
      ["", *BUNDLED.fetch(crate["name"], [])].flat_map { |inner| texts_in(File.join(File.dirname(crate["manifest_path"]), inner)) }
    end

    # Of the same repository, which has one text for all of them.
    def siblings(crate) = crates.select { |other| other["repository"] && other["repository"] == crate["repository"] }

    def texts_in(folder)
      Dir.children(folder).grep(FILES).sort.map { |name| File.join(folder, name) }.select { |path| File.file?(path) }
         .map { |path| File.read(path, encoding: "UTF-8").scrub }
    end

    # A few crates name a licence and forget its text.
    def standard_texts(crate)
      names = crate["license"].split(%r{ OR | AND |/}).map { |name| name.delete("()").strip }
      texts = names.filter_map { |name| standard_text(name) }
      raise Impossible, "the crate #{crate["name"]} has no text of its licence #{crate["license"]}" if texts.empty?

      ["Copyright (c) #{crate["authors"].join(", ")}\n\n#{texts.first}"]
    end

    def standard_text(name)
      path = File.join(rust_documents, "licenses", "#{name}.txt")
      File.read(path) if File.exist?(path)
    end

    def linked
      zig = Dir.glob(File.join(Zig::FOLDER, "lib/python*/site-packages/ziglang")).first or raise Impossible, "zig is not installed"
      works = [Work.new("Rust's standard library", "MIT OR Apache-2.0", [standard_text("MIT")]),
               Work.new("LLVM's libunwind", "Apache-2.0 WITH LLVM-exception", [File.read(File.join(zig, "lib/libunwind/LICENSE.TXT"))]),
               Work.new("Zig's compiler-rt", "MIT", [File.read(File.join(zig, "LICENSE"))])]
      works << Work.new("musl", "MIT", [File.read(File.join(zig, "lib/libc/musl/COPYRIGHT"))]) if @target.end_with?("-musl")
      works
    end

    def rust_documents = File.join(Toolchain.sysroot, "share/doc/rust")
  end
end
