# frozen_string_literal: true

module Fairlead
  # The file with the id of the supervisor, which writes it. Here is the check before a start. If the process of the file no
  # longer runs, the file is overwritten.
  class PidFile
    # More bytes than a process id takes.
    LONGEST = 64

    # Raises PidFileError if the file does not belong to a server; changes nothing. +running+: also if its process runs, unless
    # it is +owner+.
    def self.check(path, running: false, owner: nil)
      new(SystemText.absolute(path)).check(running: running, owner: owner)
    end

    attr_reader :path

    def initialize(path)
      @path = path
    end

    def check(running: false, owner: nil)
      refuse_link if File.symlink?(path)
      return unless File.exist?(path)

      text = File.read(path, LONGEST).to_s.strip
      pid = pid_in(text)
      refuse_unless_free(text) if running && pid != owner
    rescue SystemCallError => e
      raise PidFileError.new(path, Error.reason(e))
    end

    private

    def refuse_link
      raise PidFileError.new(path, "it is a symbolic link, which another user may have made; remove it, or choose another path")
    end

    # The process id in the text of the file; nil without text.
    def pid_in(text)
      return if text.empty?

      pid = Integer(text, 10, exception: false)
      pid&.positive? ? pid : raise(PidFileError.new(path, "it does not contain a process id"))
    end

    # The file may contain the id of this process: in a container, the first process always has the same id.
    def refuse_unless_free(text)
      pid = pid_in(text)
      raise PidFileError.new(path, "process #{pid} is running", pid: pid) if pid && pid != Process.pid && running?(pid)
    end

    def running?(pid)
      Process.kill(0, pid)
      true
    rescue Errno::ESRCH, RangeError
      false
    rescue Errno::EPERM
      true
    end
  end
end
