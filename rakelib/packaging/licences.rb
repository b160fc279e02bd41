# frozen_string_literal: true

require "json"
require_relative "build"
require_relative "command"
require_relative "linked_works"
require_relative "standard_library"
require_relative "zig"

module Packaging
  # The licences of all crates in the files of a gem, and of the C libraries and standard library that are linked into them: the text of
  # LICENSE-THIRD-PARTY. Their authors ask for it beside every copy.
  class Licences
    FILES = %r{(?:\A|/)(?:licen[sc]e|copying|notice|unlicense|copyright)[^/]*\z}i

    # Sources, tests, and the second licence of zstd, of which one may choose.
    OTHERS = %r{\.rs\z|\A(?:tests?|benches|examples)/|\Azstd/COPYING\z}

    # In zig's folder.
    ZIG = { LinkedWorks::UNWINDER => "lib/libunwind/LICENSE.TXT", LinkedWorks::COMPILER_RT => "LICENSE",
            LinkedWorks::MUSL => "lib/libc/musl/COPYRIGHT" }.freeze

    # +title+: name and version. +licence+: in SPDX's words. +texts+: the files of the work.
    Work = Struct.new(:title, :licence, :texts)

    # +packages+: names of packages of the workspace.
    def initialize(packages, target)
      @packages = packages
      @target = target
    end

    # The text of the MIT licence for another holder.
    def self.mit(holder) = File.read(File.join(ROOT, "LICENSE")).sub(/^Copyright .*$/, "Copyright (c) #{holder}")

    def text
      works = self.works + linked
      parts = crates.flat_map { |crate| LinkedWorks.in_crate(crate).map { |work| "  #{work.title} (in #{crate["name"]}): #{work.licence}" } }
      groups = works.flat_map { |work| work.texts.map { |text| [text, work.title] } }.group_by(&:first)
      <<~TEXT
        The native files of this gem contain these works under these licences:

        #{(works.map { |work| "  #{work.title}: #{work.licence}" } + parts).join("\n")}

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

    # The crate's own texts first, then the texts of libraries in its folders.
    def texts_of(crate)
      folder = File.dirname(crate["manifest_path"])
      Dir.glob("**/*", base: folder).grep(FILES).grep_v(OTHERS).sort_by { |name| [name.count("/"), name] }.map { |name| File.join(folder, name) }
         .select { |path| File.file?(path) }.map { |path| File.read(path, encoding: "UTF-8").scrub }
    end

    # Of the same repository, which has one text for all of them.
    def siblings(crate) = crates.select { |other| other["repository"] && other["repository"] == crate["repository"] }

    # A few crates name a licence and forget its text.
    def standard_texts(crate)
      return [self.class.mit(crate["authors"].join(", "))] if crate["license"].match?(/\bMIT\b/)

      raise Impossible, "the crate #{crate["name"]} has no text of its licence #{crate["license"]}"
    end

    def linked = LinkedWorks.of_compilers(@target).map { |work| Work.new(work.title, work.licence, texts_of_linked(work.name)) }

    def texts_of_linked(name)
      return StandardLibrary.new(Toolchain.sysroot).texts if name == LinkedWorks::STANDARD_LIBRARY

      zig = Dir.glob(File.join(Zig::FOLDER, "lib/python*/site-packages/ziglang")).first or raise Impossible, "zig is not installed"
      [File.read(File.join(zig, ZIG.fetch(name)), encoding: "UTF-8")]
    end
  end
end
