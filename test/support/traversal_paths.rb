# frozen_string_literal: true

module Fairlead
  module Test
    # Paths that have led, or could lead, out of a public folder: all known spellings of `..` and `/`, by depth and by base,
    # names with a special meaning on other platforms, and paths from advisories. All of them are valid request targets of
    # HTTP. The public folder must be in a folder with `secret.txt` and `public-secret/secret.txt`.
    module TraversalPaths
      # +refused+: true if the text alone shows that the path names no file.
      Path = Struct.new(:target, :refused)

      # Ways to write "..". The LITERAL ones are ordinary names after one decoding.
      UPWARD = %w[
        .. %2e%2e %2E%2E .%2e %2e. ..; ..;a=b ... .... ..%20 ..%09 ..%00 ..%0d%0a ..%01 .%00. ..%7f ..%3b ..%3f ..%2a ..+ %2e%2e%20
        %2 %c0%ae%c0%ae %c0%2e%c0%2e %c0%5e%c0%5e %e0%80%ae%e0%80%ae %f0%80%80%ae%f0%80%80%ae %fc%80%80%80%80%ae %ae%ae %ff..
        %uff0e%uff0e %u002e%u002e %u2024%u2024 %ef%bc%8e%ef%bc%8e %e2%80%a5 %e2%80%a4%e2%80%a4 .%e2%80%8b. %ef%b9%92%ef%b9%92
      ].push("%%32%65%%32%65", "%%2e%%2e").freeze
      LITERAL_UPWARD = %w[%252e%252e %25%32%65%25%32%65 %252e%252e%253b 0x2e0x2e %2525252e%2525252e].freeze

      # Ways to write "/".
      SEPARATORS = %w[
        %2f %2F %5c %5C \\ // /./ /.// %2f/ \\/ /\\ %00/ /%00 %01/ %c0%af %c1%9c %c0%2f %c0%5c %e0%80%af %f0%80%80%af %af %bg%qf
        %u2215 %u2216 %u002f %ef%bc%8f %ef%bc%bc %e2%88%95 %e2%81%84 %3a/ %2f%2f %5c%5c
      ].freeze
      LITERAL_SEPARATORS = %w[/ %252f %255c %2525252f %25c0%25af ;/].freeze

      # Beginnings of paths.
      BASES = {
        "/" => false, "/sub/" => false, "/sub/deep/" => false, "/page.html/" => false, "/missing/" => false, "/.well-known/" => false,
        "/sub;a=b/" => false, "/sub/deep/more/and/more/" => false, "//" => true, "/./" => true, "/%2e/" => true, "/sub/./" => true, "/sub//" => true,
        "/~/" => true, "/C:/" => true, "/nul/" => true, "/.hidden/" => true, "/%2f" => true, "/\\" => true, "/%5c" => true
      }.freeze

      # Names with a special meaning on other platforms. Windows: drives, streams, short names, devices, ignored characters
      # at the end of names, and namespaces. macOS: forks and inodes. Linux: magic links.
      PLATFORMS = %w[
        /C:/Windows/win.ini /c:secret.txt /c%3a/secret.txt /C|/secret.txt /c%7c/secret.txt /C:%5cWindows%5cwin.ini /C:\\Windows\\win.ini
        /page.html::$DATA /page.html:secret /page.html%3a%3a$DATA /sub::$INDEX_ALLOCATION/page.html /sub:$I30:$INDEX_ALLOCATION/page.html
        /page.html. /page.html... /page.html%20 /page.html%20%20 /page.html.%20 /page.html%2e /sub./page.html /sub%20/page.html /sub../secret.txt.
        /SECRET~1.TXT /PUBLIC~1/SECRET~1.TXT /CONFIG~1.RU /GIT~1/config /ENV~1 /secre~1.txt /A~10.B /PROGRA~1/x
        /CON /con /Con.txt /PRN /AUX /aux.html /NUL /nul.tar.gz /COM1 /com9.txt /COM0 /LPT1 /lpt3.log /COM%c2%b9 /LPT%c2%b2 /CONIN$ /CONOUT$
        /CLOCK$ /con%20.txt /sub/con/x /sub/aux.txt /nul%20 /con: /nul::$DATA
        //?/C:/secret.txt //./C:/secret.txt /%5c%5c?%5cC:%5csecret.txt /\\\\?\\C:\\secret.txt /\\\\.\\C:\\ /%5c??%5cC:%5c //./GLOBALROOT/Device
        /%5c%5clocalhost%5cc$%5csecret.txt //localhost/c$/secret.txt /\\\\localhost\\c$
        /page.html%3c /page.htm%3e /page%2a /page.ht%3f%3f /%22page.html%22 /page.html%7c
        /page.html/..namedfork/rsrc /page.html/..namedfork/data /.vol/1/2 /._page.html /.DS_Store /.%e2%80%8cenv /.e%c2%adnv
      ].freeze
      LITERAL_PLATFORMS = %w[
        /proc/self/environ /proc/self/root/etc/passwd /proc/self/cwd/config.ru /proc/self/fd/3 /dev/zero /etc/passwd /SECRET.TXT /PAGE.HTML
        /page.html/rsrc /page.html%2b /page.html+ /config.ru /config%2eru /secret.txt /public-secret/secret.txt
      ].freeze

      # Advisory => paths of the kind in question.
      ADVISORIES = {
        "WEBrick CVE-2008-1145" => %w[/..%5c..%5c..%5csecret.txt /..%5csecret.txt /sub/..%5c..%5csecret.txt /.HTACCESS /.HtPasswd /.Git/config
                                      /secret.txt~],
        "WEBrick CVE-2008-1891" => %w[/.env. /.env%2e /.env%20 /.env%2b /.env+ /.htaccess%20 /page.html%2e%2e],
        "Rack CVE-2013-0262" => %w[/..%2fsecret.txt /sub/..%2f..%2fsecret.txt /%2e%2e%2fsecret.txt /sub/../../public-secret/secret.txt],
        "Rack CVE-2020-8161" => %w[/../public-secret/secret.txt /%2e%2e/public-secret/secret.txt /../public-secret /../public-secret/
                                   /..%2fpublic-secret%2f],
        "Rack CVE-2025-27610" => %w[/sub%2f..%2f..%2fsecret.txt /sub/%2e%2e/.env /%2e%2e%2f%2e%2e%2fetc%2fpasswd /sub/..%2f.env /.%2fsecret.txt],
        "Rack CVE-2026-34785" => %w[/..-secret/secret.txt /sub/../-secret/secret.txt /%2e%2e/public%2dsecret/secret.txt],
        "Rack CVE-2026-22860" => %w[/../public-secret/../secret.txt /../public-secret%2fsecret.txt /../public/../secret.txt /../public/page.html],
        "iodine CVE-2024-22050" => %w[/../secret.txt /.//../secret.txt //../secret.txt /sub//../../secret.txt /%2e%2e//secret.txt /..//secret.txt
                                      /sub/../..//secret.txt /sub/..%2f/../secret.txt],
        "Mongrel CVE-2007-6612" => %w[/sub/.%252e/../secret.txt /.%2e/secret.txt /..%252f..%252fsecret.txt],
        "Sprockets CVE-2018-3760" => %w[/file:%2f%2f/etc/passwd /sub/file:%2f%2f%2fetc%2fpasswd /file:///..%2fsecret.txt /file:%252f%252f/etc/passwd],
        "Apache CVE-2021-41773" => %w[/sub/.%2e/.%2e/etc/passwd /sub/%2e./%2e./etc/passwd /cgi-bin/.%2e/%2e%2e/secret.txt],
        "Apache CVE-2021-42013" => %w[/sub/%%32%65%%32%65/secret.txt /sub/.%%32%65/secret.txt],
        "nginx alias" => %w[/sub../secret.txt /sub../public-secret/secret.txt /.well-known../secret.txt]
      }.freeze

      module_function

      # Returns all paths, each once.
      def all = [*climbs, *climbs_from_every_base, *others].uniq(&:target)

      # Returns every spelling of both, to several depths.
      def climbs
        (UPWARD + LITERAL_UPWARD).product(SEPARATORS + LITERAL_SEPARATORS, { 1 => "secret.txt", 3 => "etc/passwd", 9 => "etc/passwd" }.to_a)
                                 .map do |upward, separator, (depth, file)|
          Path.new("/#{(upward + separator) * depth}#{file}", UPWARD.include?(upward) || SEPARATORS.include?(separator))
        end
      end

      # Returns the usual spellings, from every base, to every depth.
      def climbs_from_every_base
        BASES.to_a.product(%w[.. %2e%2e %c0%ae%c0%ae %252e%252e], %w[/ %2f %5c %252f], (1..6).to_a, %w[secret.txt public-secret/secret.txt])
             .map do |(base, refused), upward, separator, depth, file|
          Path.new("#{base}#{(upward + separator) * depth}#{file}", refused || UPWARD.include?(upward) || SEPARATORS.include?(separator))
        end
      end

      def others
        [PLATFORMS, ADVISORIES.values.flatten].flat_map { |paths| paths.map { |path| Path.new(path, true) } } +
          LITERAL_PLATFORMS.map { |path| Path.new(path, false) } +
          [Path.new("/#{"a" * 256}", true), Path.new("/#{"a/" * 2500}b", true), Path.new("/#{"../" * 1000}etc/passwd", true)]
      end
    end
  end
end
