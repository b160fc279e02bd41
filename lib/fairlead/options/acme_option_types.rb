# frozen_string_literal: true

module Fairlead
  module Options
    # The types of options about certificates from an authority.
    module Types
      # A certificate to order, as an Acme::Order: hosts and keywords in the configuration file, or a single text like an
      # address of `bind`: "shop.example,www.shop.example?contact=admin@shop.example".
      class AcmeOrder < Type
        KEYWORDS = %i[contact directory terms_of_service_agreed challenge eab_kid eab_hmac ca].freeze

        LABEL = /(?!-)[a-z0-9_-]{1,63}(?<!-)/
        HOST = /\A(?=.{1,253}\z)#{LABEL}(?:\.#{LABEL})*\z/

        def initialize
          super("HOSTS")
        end

        def expectation = "hosts, and keywords if need be, such as \"shop.example\", contact: \"admin@shop.example\""

        # True, because several values are one certificate.
        def list? = true

        def parse(value)
          return value if value.is_a?(Acme::Order)

          words = Array(value)
          keywords = words.last.is_a?(Hash) ? words.last : {}
          words -= [keywords]
          invalid!(value) unless words.any? && words.all?(String)

          hosts, queries = words.map { |word| word.partition("?").values_at(0, 2) }.transpose
          order(hosts.flat_map { |text| text.split(",") }, { **queries.map { |query| read(query) }.reduce(:merge), **keywords })
        end

        def resolve(order)
          return order unless order.ca

          path = SystemText.absolute(order.ca, yield)
          File.readable?(path) ? order.dup.tap { |copy| copy.ca = path }.freeze : raise(Invalid, "has a ca that cannot be read: #{order.ca}")
        end

        # Without the secret.
        def format(order)
          values = order.to_h.slice(*KEYWORDS).compact
          values[:eab_hmac] &&= "(set)"
          "#{order.hosts.join(",")}?#{values.map { |name, value| "#{name}=#{Array(value).join(",")}" }.join("&")}"
        end

        private

        def read(query)
          return {} if query.empty?

          SystemText.query(query).to_h.transform_keys(&:to_sym)
        end

        def order(hosts, keywords)
          unknown = keywords.keys - KEYWORDS
          raise Invalid, "does not know #{unknown.first}; it knows #{KEYWORDS.join(", ")}" if unknown.any?

          hosts = hosts.map { |host| host(host.strip.downcase) }.uniq
          raise Invalid, "names no host" if hosts.empty?

          agreed!(keywords[:terms_of_service_agreed])
          Acme::Order.new(hosts: hosts, directory: directory(keywords[:directory]), contact: contacts(keywords[:contact]),
                          terms_of_service_agreed: true, challenge: challenge(keywords[:challenge]), ca: ca(keywords[:ca]),
                          **external_account(keywords)).freeze
        end

        def host(text)
          raise Invalid, "cannot have #{text}: a wildcard takes the challenge dns-01, which only a server of names can answer" if text.include?("*")
          raise Invalid, "takes names of hosts, not #{text.inspect}" if !HOST.match?(text) || text.match?(/\A[\d.]+\z/)

          text
        end

        def agreed!(value)
          return if value.to_s == "true"

          raise Invalid, "needs terms_of_service_agreed: true, which says that you agree to the terms of the authority; those of Let's Encrypt " \
                         "are at https://letsencrypt.org/repository/"
        end

        def directory(value)
          return Acme::Order::DIRECTORY if value.nil?

          raise Invalid, "has a directory that is no https:// address: #{value.inspect}" unless value.to_s.match?(%r{\Ahttps://[^/\s]+(?:/\S*)?\z})

          value.to_s
        end

        # A contact that looks like a mail address is one.
        def contacts(value)
          texts = value.is_a?(String) ? value.split(",") : Array(value)
          texts.map(&:to_s).map(&:strip).map { |text| text.match?(/\A[^:@\s]+@[^:@\s]+\z/) ? "mailto:#{text}" : text }.each do |text|
            raise Invalid, "has a contact that is no address of mail: #{text.inspect}" unless text.match?(/\A[a-z]+:\S+\z/)
          end
        end

        def challenge(value)
          return if value.nil?

          name = value.to_s.tr("_", "-")
          Acme::CHALLENGES.include?(name) ? name : raise(Invalid, "has the challenge #{value.inspect}; it can be #{Acme::CHALLENGES.join(" or ")}")
        end

        def external_account(keywords)
          kid, hmac = keywords.values_at(:eab_kid, :eab_hmac).map { |value| value.to_s unless value.to_s.empty? }
          raise Invalid, "takes eab_kid and eab_hmac together" if kid.nil? != hmac.nil?
          raise Invalid, "has an eab_hmac that is not what the authority gives: it is in base64url" unless hmac.nil? || hmac.match?(/\A[\w-]+=*\z/)

          { eab_kid: kid, eab_hmac: hmac }
        end

        def ca(value) = (Path.new("PATH").parse(value) unless value.nil?)
      end
    end
  end
end
