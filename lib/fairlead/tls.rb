# frozen_string_literal: true

module Fairlead
  # TLS: the parameters of an `ssl://` address and the options (Parameters, Settings), the offer of a listener that follows from
  # them (Offer), and the replacement of certificates (Offers, Upkeep, Settling; in processes that read no files, HandedOver and
  # Follower). The engine does the handshakes.
  module Tls
    autoload :Parameters, "fairlead/tls/parameters"
    autoload :Settings, "fairlead/tls/settings"
    autoload :Store, "fairlead/tls/store"
    autoload :PrivateKey, "fairlead/tls/private_key"
    autoload :Offer, "fairlead/tls/offer"
    autoload :Offers, "fairlead/tls/offers"
    autoload :Upkeep, "fairlead/tls/upkeep"
    autoload :HandedOver, "fairlead/tls/handed_over"
    autoload :Follower, "fairlead/tls/follower"
    autoload :Settling, "fairlead/tls/settling"
    autoload :DevelopmentCertificate, "fairlead/tls/development_certificate"
    autoload :DevelopmentAuthority, "fairlead/tls/development_authority"

    # The parameters are wrong, or the files that they name. The message says why, and is shown behind the address.
    class Invalid < Error; end

    # A certificate (with the intermediates up to the authority) and its key, each a path or a place in the Store; and the path
    # of an OCSP response, or nil.
    Certificate = Struct.new(:cert, :key, :ocsp)
  end
end
