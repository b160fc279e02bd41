# frozen_string_literal: true

# A thread that finds the database locked by another thread waits without Ruby's lock, so that the other thread can
# continue. Rails does this itself since 7.1. Before that, the whole process stands still for up to five seconds, on any
# server.
if Rails.gem_version < Gem::Version.new("7.1")
  ActiveSupport.on_load(:active_record_sqlite3adapter) do
    prepend(Module.new do
      def configure_connection
        super
        @connection.busy_handler { |tries| sleep(0.001) && tries < 5_000 }
      end
    end)
  end
end
