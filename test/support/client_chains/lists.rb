# frozen_string_literal: true

module Fairlead
  module Test
    # Revocation lists.
    class ClientChains
      private

      # A client of +authority+ with the serial number 77.
      def listed(name, *lists, authority: root, ca: [root], **options) = by(name, authority, ca: ca, crl: lists, serial: 77, **options)

      def point(value)
        OpenSSL::X509::ExtensionFactory.new.then do |factory|
          factory.config = OpenSSL::Config.parse("[point]\n#{value.join("\n")}\n")
          factory.create_extension("issuingDistributionPoint", "@point", true)
        end
      end

      def add_lists
        listed("a list", M.list(root))
        listed("a list in version 1", M.list(root, version: 0))
        listed("a list in version 1 that has it", M.list(root, 77, version: 0))
        listed("a list that never ends", M.list(root, ends: nil))
        listed("revoked", M.list(root, 5, 77, 1 << 70))
        listed("on hold", M.list(root, [77, 6]))
        listed("removed from the list", M.list(root, [77, 8]))
        listed("a list that is overdue", M.list(root, ends: -0.5))
        listed("a list that is not valid yet", M.list(root, since: 1))
        listed("a list by another key", M.list(root, signer: M.key))
        listed("a list that another authority of the name has signed", M.list(M.authority("root")))
        listed("no list of the issuer", M.list(M.authority("another")))
        mute = M.authority("mute", change: { "keyUsage" => "critical,keyCertSign" })
        listed("an issuer that may not sign lists", M.list(mute), authority: mute, ca: [mute])
        listed("the root has revoked itself", M.list(root, root.certificate.serial))
      end

      def add_lists_of_intermediates
        serial = middle.certificate.serial
        [[root], [root, middle]].each do |ca|
          trusted = ca.include?(middle) ? "trusted" : "sent"
          listed("lists of all, the intermediate #{trusted}", M.list(root), M.list(middle), authority: middle, ca: ca)
          listed("an intermediate that is revoked, #{trusted}", M.list(root, serial), M.list(middle), authority: middle, ca: ca)
          listed("no list of the intermediate, #{trusted}", M.list(root), authority: middle, ca: ca)
          listed("no list of the root, the intermediate #{trusted}", M.list(middle), authority: middle, ca: ca)
        end
        listed("only the intermediate is trusted, with lists", M.list(root), M.list(middle), authority: middle, ca: [middle])
        listed("only the intermediate is trusted, and revoked", M.list(root, serial), M.list(middle), authority: middle, ca: [middle])
      end

      def add_lists_of_one_issuer
        older = { since: -3, number: 1 }
        newer = { since: -1, number: 2 }
        %i[itself reverse].each do |order|
          listed("revoked by the newer list, #{order}", *[M.list(root, **older), M.list(root, 77, **newer)].public_send(order))
          listed("released by the newer list, #{order}", *[M.list(root, 77, **older), M.list(root, **newer)].public_send(order))
          listed("the newer list is not valid yet, #{order}", *[M.list(root, **older), M.list(root, 77, since: 1)].public_send(order))
          listed("the newer list is overdue, #{order}", *[M.list(root, **older), M.list(root, since: -1, ends: -0.5)].public_send(order))
        end
        pair = Array.new(2) { M.authority("rollover") }
        pair.permutation do |own, other|
          listed("lists of both keys (#{pair.index(own)})", M.list(own), M.list(other, 77), authority: own, ca: pair)
          listed("lists of both keys, revoked (#{pair.index(own)})", M.list(other), M.list(own, 77), authority: own, ca: pair)
          listed("a list of the other key only (#{pair.index(own)})", M.list(other), authority: own, ca: pair)
        end
      end

      # Leaves need no basic constraints, and their key usage does not make them authorities.
      def add_scopes_of_bare_clients
        users, authorities = %w[onlyuser=TRUE onlyCA=TRUE].map { |text| [point([text])] }
        { "with key usage" => {}, "without key usage" => { "keyUsage" => nil },
          "with keyCertSign" => { "keyUsage" => "digitalSignature,keyCertSign" } }
          .each do |kind, change|
          title = "a client #{kind} and without basic constraints"
          change = { "basicConstraints" => nil, **change }
          both = ->(*revoked, **newer) { [M.list(root, *revoked, extensions: users), M.list(root, extensions: authorities, **newer)] }
          listed("#{title}: both lists", *both.call, change: change)
          listed("#{title}: revoked in the list of clients", *both.call(77), change: change)
          listed("#{title}: revoked, and the list of authorities is newer", *both.call(77, since: -1), change: change)
          listed("#{title}: a list of authorities only", M.list(root, extensions: authorities), change: change)
        end
      end

      def add_scopes_of_bare_authorities
        bare = M.authority("bare", change: { "basicConstraints" => nil })
        users, authorities = %w[onlyuser=TRUE onlyCA=TRUE].map { |text| [point([text])] }
        serial = bare.certificate.serial
        listed("a root without basic constraints: a list of clients", M.list(bare, extensions: users), authority: bare, ca: [bare])
        listed("a root without basic constraints that has revoked itself as a client", M.list(bare, serial, extensions: users),
               M.list(bare, extensions: authorities), authority: bare, ca: [bare])
        listed("a root without basic constraints that has revoked itself as an authority", M.list(bare, extensions: users),
               M.list(bare, serial, extensions: authorities), authority: bare, ca: [bare])
      end

      # A list with a distribution point relative to its issuer, and an older list without a point.
      def add_relative_points
        near, far = %w[part1 part2].map { |name| "relativename=rn\n[rn]\nCN=#{name}\n" }
        full = "fullname=dirName:f\n[f]\n1.CN=root\n2.CN=part1\n"
        other = "relativename=rn\nCRLissuer=dirName:ci\n[ci]\nCN=elsewhere\n[rn]\nCN=part1\n"
        points = { "relative" => near, "relative to another issuer" => other, "another relative" => far,
                   "in capitals" => near.sub("part1", "Part1"), "a URI" => "fullname=URI:http://a/1.crl\n", "a full name" => full }
        at = "fullname=URI:http://a/1.crl\n"
        points.update("a URI by another issuer" => "#{at}CRLissuer=dirName:ci\n[ci]\nCN=elsewhere\n",
                      "a URI by its issuer" => "#{at}CRLissuer=dirName:ci\n[ci]\nCN=ROOT\n")
        points.each do |title, text|
          { "a relative point" => near, "a full name" => full, "a URI" => at }.each do |kind, own|
            extensions = [M.configured("issuingDistributionPoint", "@p", "[p]\n#{own}", critical: true)]
            more = [M.configured("crlDistributionPoints", "p", "[p]\n#{text}")]
            name = "a list with #{kind}, and the certificate's is #{title}"
            listed(name, M.list(root, extensions: extensions), more: more)
            listed("#{name}: revoked", M.list(root, 77, extensions: extensions), more: more)
            listed("#{name}: revoked, and not in an older one", M.list(root, 77, since: -1, extensions: extensions), M.list(root), more: more)
            listed("#{name}: in an older one only", M.list(root, since: -1, extensions: extensions), M.list(root, 77), more: more)
          end
        end
      end

      def add_lists_of_one_date
        lists = { "clean" => M.list(root), "revoked" => M.list(root, 77) }
        [%w[clean revoked], %w[revoked clean], %w[clean revoked clean], %w[clean clean]].each do |names|
          listed("lists of one date: #{names.join(", ")}", *lists.values_at(*names))
        end
        listed("lists of one date, and a newer one: revoked, clean, clean", lists["revoked"], lists["clean"], M.list(root, since: -1))
      end

      def add_signatures_of_lists
        old = M.list(root, digest: "SHA1")
        listed("a list signed with SHA-1", old)
        listed("a list signed with SHA-1 that has it", M.list(root, 77, digest: "SHA1"))
        listed("a newer list signed with SHA-1 that has it", M.list(root, 77, since: -1, digest: "SHA1"), M.list(root))
        listed("a list signed with SHA-1 beside another one", old, M.list(root))
        other = M.authority("root")
        listed("a list of another key signed with SHA-1", M.list(other, 77, digest: "SHA1"), M.list(root), ca: [root, other])
      end

      def add_numbers
        long = (1 << 2399) + 1
        listed("a list with a serial number of 300 bytes", M.list(root, long))
        listed("a list with one of 300 bytes, and revoked", M.list(root, 77, long))
        [-128, 128, 0, -1, 255, 127].each do |serial|
          by("the serial number #{serial}", root, serial: serial, crl: [M.list(root)])
          by("the serial number #{serial}, revoked", root, serial: serial, crl: [M.list(root, serial)])
          others = [serial + 256, serial - 256, -serial] - [serial]
          by("the serial number #{serial}, and others are revoked", root, serial: serial, crl: [M.list(root, *others)])
        end
      end

      def add_scopes
        users, authorities, here = ["onlyuser=TRUE", "onlyCA=TRUE", "fullname=URI:http://a/1.crl"].map { |text| [point([text])] }
        points = { "crlDistributionPoints" => "URI:http://a/1.crl" }
        listed("lists of clients and of authorities", M.list(root, extensions: users), M.list(root, extensions: authorities))
        listed("revoked in the list of clients", M.list(root, 77, extensions: users), M.list(root, extensions: authorities))
        listed("a list of authorities only", M.list(root, extensions: authorities))
        pointed = M.authority("pointed", change: points)
        listed("a list from where the certificate says", M.list(pointed, extensions: here), authority: pointed, ca: [pointed], change: points)
        listed("a list from elsewhere", M.list(pointed, extensions: here), authority: pointed, ca: [pointed],
                                                                           change: { "crlDistributionPoints" => "URI:http://a/2.crl" })
        listed("a list from somewhere, and the certificate does not say", M.list(pointed, extensions: here), authority: pointed, ca: [pointed])
      end
    end
  end
end
