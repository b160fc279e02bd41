# frozen_string_literal: true

module Puma
  # A plugin. `Puma::Plugin.create { … }` in a file puma/plugin/NAME.rb makes its class.
  class Plugin
    NAME = %r{puma/plugin/([^/]+)\.rb\z}

    # The name comes from the path of the file.
    def self.create(&block)
      path = caller_locations(1, 1).first.path
      name = path[NAME, 1] or raise Fairlead::PluginError.new(path, "a plugin has to lie in a folder puma/plugin")
      Plugins.register(name, Class.new(self, &block))
    end

    # Runs the block on a separate thread once the server is ready.
    def in_background(&block) = Plugins.add_background(block)

    def workers_supported? = Puma.forkable?
  end

  # The classes of the plugins in loaded files.
  class PluginRegistry
    # Seconds that the end of a background thread may take.
    PATIENCE = 1

    def initialize
      @classes = {}
      @background = []
      @threads = []
    end

    def register(name, plugin)
      @classes[name.to_s] = plugin
    end

    # Loads the file, if necessary. Raises Fairlead::PluginError.
    def find(name)
      require "puma/plugin/#{name}" unless @classes.key?(name)
      @classes.fetch(name) { raise Fairlead::PluginError.new(name, "puma/plugin/#{name}.rb does not call Puma::Plugin.create") }
    rescue LoadError => e
      raise unless e.path == "puma/plugin/#{name}"

      raise Fairlead::PluginError.new(name, "there is no puma/plugin/#{name}.rb on the load path; the gem that has it may be missing")
    end

    def add_background(block) = @background << block

    # Starts the added blocks.
    def start_background(log)
      @background.shift(@background.size).each_with_index do |block, index|
        Thread.new { run(block, log) }.tap do |thread|
          thread.name = "puma plugin #{index}"
          thread.thread_variable_set(:fork_safe, true)
          @threads << thread
        end
      end
    end

    # Ends the background threads. A thread that watches a child process might signal this process when that child ends, but a
    # server that has ended no longer handles signals.
    def stop_background
      @threads.each(&:kill).each { |thread| thread.join(PATIENCE) }
      @threads.clear
    end

    private

    def run(block, log)
      block.call
    rescue StandardError, ScriptError => e
      log.plugin_failed("the background of a plugin", e)
    end
  end

  Plugins = PluginRegistry.new
end
