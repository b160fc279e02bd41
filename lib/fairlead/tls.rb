# frozen_string_literal: true

module Fairlead
  # TLS: what an `ssl://` address and the options say of it (Parameters, Settings), what a listener offers because of that (Offer),
  # and how certificates are replaced (Offers, Upkeep, Settling; in processes that read no
  # files, HandedOver and Follower). The handshakes are the engine's business.
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

    # Something is wrong with the parameters, or with what they name. The message says what, and is shown behind the address.
    class Invalid < Error; end

    # A certificate (with those between it and the authority) and its key, each a path or a place in the Store; and the path of an
    # OCSP response, or nil.
    Certificate = Struct.new(:cert, :key, :ocsp)
  end
end
