# frozen_string_literal: true

require_relative "site"
require_relative "clients/attackers"
require_relative "clients/descriptors"
require_relative "clients/downloads"
require_relative "clients/real_time"
require_relative "clients/requests"
require_relative "clients/series"
require_relative "clients/sockets"
require_relative "clients/streams"
require_relative "clients/troubles"
require_relative "clients/uploads"
