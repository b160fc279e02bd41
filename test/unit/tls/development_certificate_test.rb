# frozen_string_literal: true

require "test_helper"

class TlsDevelopmentCertificateTest < Minitest::Test
  include Fairlead::Test::Folders

  Certificate = Fairlead::Tls::DevelopmentCertificate
  Authority = Fairlead::Tls::DevelopmentAuthority

  def test_it_is_for_this_machine_and_its_authority_vouches_for_it
    in_folder do |folder|
      certificate = Certificate.new("localhost", folder: folder).prepare

      assert verified?(certificate)
      ["localhost", "127.0.0.1", "::1"].each { |host| assert OpenSSL::SSL.verify_certificate_identity(leaf(certificate), host), host }
      refute OpenSSL::SSL.verify_certificate_identity(leaf(certificate), "shop.test")
      assert_equal 0o600, File.stat(certificate.path).mode & 0o777
      refute_predicate certificate.authority, :trusted?
    end
  end

  def test_hosts_share_an_authority_and_each_stays_as_it_is
    in_folder do |folder|
      paths = ["localhost", "shop.test", "[::1]", "192.168.1.4"].map { |host| Certificate.new(host, folder: folder).prepare.path }
      before = paths.map { |path| File.read(path) }

      assert_equal 4, paths.uniq.size
      assert(["shop.test", "192.168.1.4"].all? { |host| OpenSSL::SSL.verify_certificate_identity(leaf(Certificate.new(host, folder: folder)), host) })
      ["localhost", "shop.test", "[::1]", "192.168.1.4"].each { |host| assert verified?(Certificate.new(host, folder: folder).prepare) }
      assert_equal(before, paths.map { |path| File.read(path) })
    end
  end

  def test_it_is_renewed_before_it_ends_and_the_authority_stays
    in_folder do |folder|
      certificate = Certificate.new(folder: folder).prepare
      authority = File.read(certificate.authority.path)
      first = leaf(certificate)
      File.write(certificate.path, ending(first, Certificate::RENEWED_BEFORE - 60, certificate.authority))
      renewed = Certificate.new(folder: folder).prepare

      assert_operator leaf(renewed).not_after, :>, Time.now + Certificate::RENEWED_BEFORE
      assert_equal authority, File.read(certificate.authority.path)
      assert verified?(renewed)
    end
  end

  def test_what_is_damaged_is_made_anew
    in_folder do |folder|
      certificate = Certificate.new(folder: folder).prepare
      ["authority.pem", "authority.key.pem", "localhost.pem"].each do |name|
        File.write(name, "nothing of the kind")

        assert verified?(Certificate.new(folder: folder).prepare), name
      end
      assert_path_exists certificate.path
    end
  end

  # A thief of the authority's key cannot use it for other hosts.
  def test_the_authority_can_vouch_for_nobody_else
    in_folder do |folder|
      authority = Certificate.new(folder: folder).prepare.authority
      %w[DNS:bank.example DNS:localhost.example IP:192.0.2.1].each { |name| refute vouches?(authority, name), name }
      %w[DNS:shop.test DNS:localhost IP:10.1.2.3 IP:::1].each { |name| assert vouches?(authority, name), name }
    end
  end

  def test_hosts_of_the_world_are_refused
    %w[shop.example 192.0.2.1 test.example notlocalhost 2001:db8::1 ../x].each do |host|
      assert_match(/can only be for names such as localhost/, assert_raises(Fairlead::Tls::Invalid) { Certificate.new(host, folder: "x") }.message)
    end
  end

  def test_every_interface_means_the_private_addresses_of_this_machine_too
    hosts = Certificate.new("::", folder: "x").hosts

    assert_equal ["localhost", "127.0.0.1", "::1"], hosts.first(3)
    assert(hosts.drop(1).all? { |host| Authority.allows?(host) })
    assert_equal hosts, Certificate.new("0.0.0.0", folder: "x").hosts
  end

  def test_the_commands_name_the_certificate_of_the_authority
    in_folder("a folder/x" => "") do |folder|
      authority = Certificate.new(folder: "#{folder}/a folder").prepare.authority

      assert_equal ["this system", "Chromium"], authority.trust_commands(macos: false).keys
      [*authority.trust_commands(macos: false).values, *authority.trust_commands(macos: true).values].each do |command|
        assert_includes command, "'#{folder}/a folder/authority.pem'"
      end
    end
  end

  private

  def leaf(certificate) = OpenSSL::X509::Certificate.new(File.read(certificate.path))

  def verified?(certificate)
    store = OpenSSL::X509::Store.new.add_cert(OpenSSL::X509::Certificate.new(File.read(certificate.authority.path)))
    leaf(certificate).check_private_key(OpenSSL::PKey.read(File.read(certificate.path))) && store.verify(leaf(certificate))
  end

  # The same certificate with another expiry.
  def ending(certificate, seconds, authority)
    certificate.not_after = Time.now + seconds
    authority.sign(certificate).to_pem
  end

  def vouches?(authority, name)
    key = OpenSSL::PKey::EC.generate("prime256v1")
    certificate = Authority.blank(key, "/CN=x", 3600, authority.certificate.subject)
    Authority.extend_certificate(certificate, authority.certificate, "subjectAltName" => name)
    OpenSSL::X509::Store.new.add_cert(authority.certificate).verify(authority.sign(certificate))
  end
end
