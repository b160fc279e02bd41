# frozen_string_literal: true

require "test_helper"
require "support/supervision"

# The folder of the server's start is removed, like an old release in a deployment.
class StartFolderTest < Minitest::Test
  include Fairlead::Test::Supervision

  # A server that a shell starts in the subfolder "current".
  class InCurrent < Fairlead::Test::ServerProcess
    private

    def command = ["sh", "-c", 'cd current && exec "$@"', "sh", *super]
  end

  CONFIG = (QUICK + ADDRESS).freeze

  SHAPES.each do |name, workers|
    %i[USR1 USR2].each do |signal|
      define_method(:"test_#{signal}_after_the_folder_was_removed_changes_nothing_#{name}") do
        server = in_current(workers) { |path| FileUtils.mkdir_p(path) }
        serving = server.serving_pids
        FileUtils.rm_r(server.path("current"))
        server.signal(signal)

        kind = signal == :USR1 && workers.positive? ? "phased restart" : "hot restart"
        assert_refused(server, /(?:No such file or directory|folder)/, serving, kind: kind)
        assert_ends(server)
      end
    end
  end

  # USR1, then the old release is removed, then USR2: each loads the release that is current at that time.
  def test_as_capistrano_deploys
    SHAPES.each_value do |workers|
      server = in_current(workers) { |path| File.symlink("releases/1", path) }
      wait_for_version(server, "1")
      switch(server, 2)
      server.signal(:USR1)
      wait_for_version(server, "2")
      wait_for_serving(server, workers)
      FileUtils.rm_r(server.path("releases/1"))
      switch(server, 3)
      server.signal(:USR2)

      wait_for_version(server, "3")
      assert_ends(server)
    end
  end

  private

  def in_current(workers)
    server = prepared(workers, kind: InCurrent)
    yield server.path("current")
    (1..3).each { |number| release(server, "releases/#{number}", number) }
    release(server, "current", 1) unless File.symlink?(server.path("current"))
    server.start
  end

  def release(server, folder, number)
    server.write("#{folder}/config.ru", VERSIONED)
    server.write("#{folder}/version", number.to_s)
    server.write("#{folder}/config/fairlead.rb", CONFIG)
  end

  def switch(server, number)
    File.symlink("releases/#{number}", server.path("next"))
    File.rename(server.path("next"), server.path("current"))
  end
end
