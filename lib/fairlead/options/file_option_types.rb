# frozen_string_literal: true

module Fairlead
  module Options
    # The types of options about files.
    module Types
      # "GLOB: VALUE", the cache-control of files with a matching path; the value is [glob, field value]. Paths with a colon are
      # never served, so the first colon ends the glob.
      class CacheRule < Text
        # RFC 9110 §5.5 without obs-text, which directives do not contain.
        FIELD_VALUE = /\A[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?\z/

        def expectation = "GLOB: VALUE, where GLOB begins with / or *, such as /fonts/*: public, max-age=604800"

        def parse(value)
          text = super
          glob, rule = text.split(":", 2).map(&:strip) if text.encoding == Encoding::UTF_8
          invalid!(value) unless glob&.start_with?("/", "*") && FIELD_VALUE.match?(rule.to_s)

          [glob, rule]
        end

        def format(value) = value.join(": ")
      end

      # The absolute path of a Unix socket; nil for none.
      class SocketPath < Path
        def expectation = "a path, or false"

        def parse(value) = PublishSocket::NONE.include?(value) ? false : super

        def resolve(value) = value && SystemText.absolute(value, yield)
      end

      # "DIR", a folder for x-sendfile, or "PREFIX=DIR", the folder that PREFIX means in x-accel-redirect; the value is [prefix
      # or nil, absolute path]. The prefix ends with a slash, so that /a/ is never the beginning of /ab.
      class SendfileRoot < Path
        PREFIX = %r{\A(?:/[\w.~-]+)*/?\z}

        def expectation = "DIR or PREFIX=DIR with an existing folder and a prefix such as /internal/"

        def resolve(value)
          within = yield
          path = SystemText.absolute(value, within)
          return [nil, path] if File.directory?(path)

          prefix, folder = value.split("=", 2)
          invalid!(value) unless folder && !folder.empty? && prefix.start_with?("/") && PREFIX.match?(prefix)

          path = SystemText.absolute(folder, within)
          File.directory?(path) ? ["#{prefix.delete_suffix("/")}/", path] : invalid!(value)
        end

        def format(value) = value.compact.join("=")
      end

      # "STATUS[,STATUS]=FILE", the page of responses with these statuses; the value is [statuses, absolute path].
      class ErrorPage < Path
        STATUSES = /\A[45]\d\d(?:,[45]\d\d)*\z/
        LARGEST = 64 * 1024

        # The reason why the file at +path+ cannot be sent, or nil. Preflight checks it.
        def self.reason_against(path)
          return "#{path} is no file that can be read" unless File.file?(path) && File.readable?(path)

          "#{path} is larger than 64 KiB" if File.size(path) > LARGEST
        end

        def expectation = "STATUS[,STATUS]=FILE with statuses from 400 to 599, such as 502,503=maintenance.html"

        def parse(value)
          text = super
          statuses, file = text.split("=", 2)
          file.to_s.empty? || !STATUSES.match?(statuses) ? invalid!(value) : text
        end

        def resolve(value)
          statuses, file = value.split("=", 2)
          [statuses.split(",").map(&:to_i), SystemText.absolute(file, yield)]
        end

        def format(value) = "#{value.first.join(",")}=#{value.last}"
      end

      # A media type without parameters, or a media range: all subtypes of a type, or all types (RFC 9110 §8.3.1, §12.5.1).
      # The value is in lower case.
      class MediaType < Text
        TOKEN = /[!#$%&'+.^`|~\w-]+/
        PATTERN = %r{\A(?:#{TOKEN}/(?:#{TOKEN}|\*)|\*/\*)\z}

        def expectation = "a media type such as application/json or text/*"

        def parse(value)
          text = super
          text.match?(PATTERN) ? text.downcase : invalid!(value)
        end
      end
    end
  end
end
