# frozen_string_literal: true

module Fairlead
  class Configuration
    # The options and hooks of a configuration file. The file is Ruby; each option and each hook is a method, also by Puma's
    # name:
    #
    #   workers :auto
    #   threads 1, 5
    #   before_worker_boot { |index| Database.connect }
    #
    # Several files make one ConfigFile: files named by several -C, and files that a file loads.
    class ConfigFile < Layer
      # Most bytes of a file: enough for a line for each of 100,000 certificates. It may be a pipe, such as `<(command)`, but an
      # endless pipe must not fill the memory.
      MOST = 16 << 20

      # Files that are written for Puma, by their names.
      FOR_PUMA = %r{(?:\A|/)puma[^/]*(?:\.rb|/[^/]+)\z}

      class << self
        # The file that is being read, or nil.
        attr_accessor :current
      end

      attr_reader :hooks

      # Settings of plugins beyond the options (name => value), and the object with the methods of the file.
      attr_reader :plugin_settings, :script

      # The application in the file, or nil. The host that the file has set for ports without a host, or nil.
      attr_accessor :app, :default_host

      # The values that win over the values of the file.
      attr_reader :flags

      # +callers_host+: the host for a port without a host, if the file sets none; nil means every interface.
      def initialize(path, *further, callers_host: nil, flags: Layer.new)
        super()
        @given = [path, *further]
        @read = []
        @callers_host = callers_host
        @flags = flags
        @hooks = Hooks.new
        @plugin_settings = {}
        @shared = {}
        @mode_blocks = { single: [], cluster: [] }
        @script = Script.new(self)
      end

      # Evaluates the files and returns itself. An exception becomes a problem, with its line.
      def read
        ConfigFile.current = self
        @given.each { |path| rescuing { load(path) } }
        configure_plugins
        self
      ensure
        ConfigFile.current = nil
      end

      # Runs the blocks of `single` or `cluster`.
      def run_mode_blocks(mode)
        @mode_blocks.fetch(mode).each { |block| rescuing { @script.instance_eval(&block) } }
      end

      # True if the host of the caller has been used.
      def uses_callers_host? = @uses_callers_host == true

      # "config/fairlead.rb:12" for the line of the file that is being evaluated.
      def here(locations = caller_locations)
        location = locations.find { |candidate| @read.include?(SystemText.decode(candidate.path)) }
        location ? "#{SystemText.decode(location.path)}:#{location.lineno}" : @read.last
      end

      # The same for a method with another name than the option: "config/puma.rb:3 (preload_app!)".
      def here_as(name) = "#{here} (#{name})"

      # --- called by the methods of the file

      def set(name, *arguments, origin:)
        load_plugin(arguments.first.to_s) if name == :plugin && arguments.first
        return super(:log_requests, !Options.fetch(:quiet).expand(*arguments)[:quiet], origin: origin) if name == :quiet && for_puma?(origin)
        return super unless name == :port && arguments.one? && arguments.first

        host = default_host || @callers_host
        @uses_callers_host = true if default_host.nil? && host
        super(name, *arguments, host, origin: origin)
      end

      def load(path)
        path = SystemText.decode(path.to_s)
        @read << path
        text = readable_text(path)
        @script.instance_eval(text, path, 1) if text
      end

      def hook(name, key, block)
        data = (@shared[key] ||= {}) if key
        @hooks.add(name, key ? ->(index = nil, *) { block.call(index, data) } : block)
      end

      def mode_block(mode, block)
        block ? @mode_blocks[mode] << block : problem(mode, here, "needs a block")
      end

      # Called for methods without effect.
      def accept(entry, arguments)
        text = entry.warning(arguments)
        warning(entry.name, "#{here}: #{text}") if text
      end

      # Called for a method that is neither an option nor a hook.
      def unknown(name)
        guess = Script.guess(name)
        problem(name, here, "unknown option#{"; did you mean #{guess}?" if guess}")
      end

      # True if a plugin may have its own settings.
      def plugins? = !settings.fetch(:plugin, nil).nil?

      private

      # The file of the plugin may add methods to this one.
      def load_plugin(name)
        Plugins.load(name)
      rescue PluginError => e
        problem(nil, here, e.message)
      end

      # Settings of a plugin apply unless the file sets the option.
      def configure_plugins
        settings[:plugin]&.value&.uniq&.each do |name|
          plugin = Plugins.load(name) or next
          layer = ConfigFile.new(*@given, callers_host: @callers_host)
          rescuing { plugin.new.config(layer.script) } if plugin.method_defined?(:config)
          take_over(layer)
        rescue PluginError
          nil # it is a problem already
        end
      end

      def take_over(layer)
        @settings = layer.settings.merge(settings)
        problems.concat(layer.problems)
        hooks.concat(layer.hooks)
        @plugin_settings = layer.plugin_settings.merge(plugin_settings)
      end

      def for_puma?(origin) = origin.sub(/:\d+(?: .*)?\z/, "").match?(FOR_PUMA)

      def readable_text(path)
        text = File.open(path, "rb") { |file| file.read(MOST + 1) || +"" }
        return text.force_encoding(Encoding::UTF_8) if text.bytesize <= MOST

        problem(nil, path, "has more than #{MOST >> 20} MiB, which is too much for a configuration; check its path")
        nil
      rescue SystemCallError => e
        problem(nil, path, "cannot be read (#{Error.reason(e)})")
        nil
      end

      # The message of a syntax error contains the line.
      def rescuing
        yield
      rescue SyntaxError => e
        problem(nil, nil, e.message.strip)
      rescue SystemExit => e
        problem(nil, here(e.backtrace_locations || []), "it called exit, with status #{e.status}")
      rescue StandardError, ScriptError => e
        problem(nil, here(e.backtrace_locations || []), Error.sum_up(e))
      end
    end
  end
end

require "fairlead/configuration/script"
