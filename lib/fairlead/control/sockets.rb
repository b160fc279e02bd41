# frozen_string_literal: true

module Fairlead
  module Control
    # The listeners of the control server and of the health endpoints and the publish socket, opened for the supervisor, which
    # serves them.
    class Sockets
      BACKLOG = 128

      # A listener that the supervisor has already. +binding+: the address that it was opened for.
      Present = Struct.new(:binding) do
        def to_s = binding
        def file = nil
        def kept? = false
        def close = nil
        def remove = nil
      end

      # A Listener or a Present; nil without a control server, or without health endpoints.
      attr_reader :control, :health

      # The publish socket, likewise.
      attr_reader :publishing

      # The address of the control server and its secret; nil without one.
      attr_reader :url, :token

      # +url+, +token+: of the control server of the running supervisor; nil if none runs yet.
      def initialize(configuration, url: nil, token: nil)
        @configuration = configuration
        @present_url = url
        @present_token = token
      end

      # Opens the configured addresses. +beside+: true if a supervisor runs, which may have the addresses already. Raises
      # BindError.
      def open(beside: false)
        @beside = beside
        @health = listen(@configuration.health_url) if @configuration.health_url
        open_control if @configuration.control_url || plugins?
        open_publishing if @configuration.publish_socket
        self
      rescue Error
        remove
        raise
      end

      # Logs the addresses, and the protection of the control server.
      def announce(log)
        log.health_listening(url_of(@health)) if @health && !present?(@health)
        log.publish_socket_refused(@refusal) if @refusal
        return unless @configuration.control_url && !present?(@control)

        log.control_listening(@url)
        log.control_open(@url) unless @token || @configuration.control_data_only?
      end

      # Closes them in this process.
      def close = each(&:close)

      # Closes them in all processes.
      def remove = each(&:remove)

      private

      def each(&block) = [@control, @health, @publishing].compact.each(&block)

      def present?(listener) = listener.is_a?(Present)

      # Plugins for Puma may read its statistics in every process.
      def plugins? = (@configuration.plugin - Plugins::BUILT_IN).any?

      def open_control
        address = @configuration.control_url || "auto"
        @control = address == "auto" ? open_auto : listen(address)
        @url = present?(@control) ? @present_url : url_of(@control)
        @token = Token.new(@configuration.control_token || @present_token).text
      end

      # The server goes on if another one has the socket, or if there is no room at the usual place.
      def open_publishing
        @publishing = listen(PublishSocket.address(place_for(@configuration.publish_socket)))
      rescue BindError => e
        raise unless e.in_use? || !@configuration.given?(:publish_socket)

        @refusal = e
      end

      # The path without symbolic links: releases may share the folder, and a supervisor recognises its socket by the path. Makes the
      # last folder of the path. If that fails, opening the socket tells why.
      def place_for(path)
        folder = File.dirname(path)
        Dir.mkdir(folder) unless File.exist?(folder)
        File.join(SystemText.decode(File.realpath(folder)), File.basename(path))
      rescue SystemCallError
        path
      end

      # The address that `auto` has meant so far.
      def open_auto
        return Present.new(@present_url) if @beside && AutoUrl.ours?(@present_url)

        listener = listen(AutoUrl.in(@configuration.temp_dir))
        listener.rename(url_of(listener))
        listener
      end

      # The supervisor refuses a Present if it does not have that address after all.
      def listen(address)
        first, *others = Listeners.open([address], backlog: BACKLOG).to_a
        others.each(&:remove)
        first
      rescue BindError => e
        raise unless @beside && e.in_use?

        Present.new(address)
      end

      # The address as it can be configured, with the port that the system has chosen.
      def url_of(listener)
        text = listener.to_s
        text.start_with?("unix:") ? text.sub(%r{\Aunix:(?!//)}, "unix://") : text.sub("http:", "tcp:")
      end
    end
  end
end
