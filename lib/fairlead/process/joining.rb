# frozen_string_literal: true

module Fairlead
  # The start of a program that the supervisor has started to load the application again: takes everything that the supervisor
  # shares, and opens only additions of the new configuration.
  #
  #   phased       new code, with the previous addresses and logs
  #   hot          new code and a new configuration
  #   replacement  for a lost process: also with the certificates of the running processes
  class Joining
    # Seconds that the first messages may take. The supervisor has sent them before it started this program.
    PATIENCE = 10

    attr_reader :number, :kind

    # Reads the first messages of the supervisor. +history_bytes+: for the memory of a server of this version. Raises Error.
    def initialize(link, history_bytes: 0)
      @link = link
      @history_bytes = history_bytes
      message = receive
      raise Error, "the supervisor is gone" unless message&.kind == :inherit

      @number, protocol, layout, kind, @supervisor, url, token = message.fields
      @kind = kind.to_sym
      @url, @token = [url, token].map { |text| text unless text.empty? }
      @shared = same_version?(protocol, layout) ? Native::Shared.adopt(Worker::MOST, message.ios.map(&:fileno)) : introduce_other_version(message.ios)
      message.ios.each(&:close)
      @descriptors = []
      @bindings = []
      kept = take_rest
      @kept = kept.compact if replacement?
    end

    def hot? = kind == :hot
    def replacement? = kind == :replacement

    # Ends this process with the supervisor, while it loads the application. Raises Error if the supervisor has already ended.
    def watch_supervisor
      raise Error, "the supervisor is gone" unless Native.end_with_parent!(Integer(@supervisor, 10))
    end

    # Opens the listeners and files of +service+. Raises Error and removes them if that fails. The block checks a new
    # configuration: it gets the Inherited.
    def open(service)
      @service = service
      return service.adopt(@descriptors, @bindings, kept: @kept) unless hot?

      inherited = Inherited.shared(@descriptors, @bindings)
      yield inherited
      check_pid_file
      service.open(inherited: inherited)
      @sockets = Control::Sockets.new(service.configuration, url: @url, token: @token).open(beside: true)
    rescue Error
      close
      raise
    end

    # Removes everything that was opened here: the supervisor does not know of it.
    def close
      @sockets&.remove
      @service&.close
    end

    # The address of the control server and its secret; nil without one.
    def control
      return [@url, @token] if @url && !hot?

      @sockets&.url && [@sockets.url, @sockets.token]
    end

    # The Role of this process: it gets its link, the Native::Shared, the number of its generation, and this object.
    def role = (@service.configuration.supervised? ? Spawner : Sole).new(@service, @link, @shared, Integer(number, 10), joining: self)

    # The settings for the supervisor.
    def settings = SupervisorSettings.new(@service, pid: Integer(@supervisor, 10), sockets: @sockets)

    # The descriptors with which the supervisor adopts memory that was made here; none if it shares its own.
    def shared_descriptors = @other ? @shared.descriptors : []

    # The supervisor has taken over the new sockets. Processes that are forked from this one must not have them.
    def reported = @sockets&.close

    # Applies the configuration of this process from now on.
    def adopted
      return unless hot?

      @service.tell_of_unused
      @service.announce_opened
      @sockets.announce(@service.log)
    end

    private

    def receive
      @link.to_io.wait_readable(PATIENCE)
      @link.receive
    end

    def same_version?(protocol, layout) = protocol == SupervisorSettings::PROTOCOL.to_s && layout == Native::Shared::LAYOUT

    # Tells a supervisor of another version which program can supervise this process and its workers. Returns the memory for
    # them, which shares the history with the memory of that version (+ios+), if possible. A process that replaces a lost one would
    # have to share all of it.
    def introduce_other_version(ios)
      if replacement?
        raise Error, "the new code has Fairlead #{VERSION}, which is incompatible with the running version; use a hot restart (USR2)"
      end

      @other = true
      @link.send(:other_version, VERSION, SupervisorSettings::PROTOCOL, Native::Shared::LAYOUT, OtherSupervisor.find)
      Native::Shared.beside(Worker::MOST, @history_bytes, ios[1]&.fileno)
    end

    # Takes the listeners. Returns the settings of the certificates of the running processes, by the keys of the addresses.
    def take_rest
      kept = {}
      while (message = receive)
        case message.kind
        when :listeners
          @bindings.concat(message.fields)
          @descriptors.concat(message.ios)
        when :kept then kept[message.fields.first] = Tls::HandedOver.read(message.ios.first)
        when :kept_end then return kept
        end
      end
      raise Error, "the supervisor is gone"
    end

    def check_pid_file
      path = @service.configuration.pid_file
      PidFile.check(path, running: true, owner: Integer(@supervisor, 10)) if path
    end
  end
end
