# frozen_string_literal: true

require "test_helper"
require "openssl"
require "support/processes"

class TlsPrivateKeyTest < Minitest::Test
  include Fairlead::Test::Folders
  include Fairlead::Test::Waiting
  include Fairlead::Test::Processes

  PrivateKey = Fairlead::Tls::PrivateKey

  def setup
    @key = OpenSSL::PKey::EC.generate("prime256v1")
  end

  def test_a_key_that_is_not_encrypted_is_left_as_it_is
    assert_equal "anything", PrivateKey.readable("anything", "a.key", "exit 1")
  end

  def test_both_kinds_of_encryption_are_decrypted_with_what_the_command_prints
    cipher = OpenSSL::Cipher.new("aes-256-cbc")
    [@key.private_to_pem(cipher, "a secret"), @key.export(cipher, "a secret")].each do |encrypted|
      readable = PrivateKey.readable(encrypted, "a.key", "echo 'a secret'")

      assert_equal @key.to_der, OpenSSL::PKey.read(readable).to_der
    end
  end

  def test_the_password_may_be_a_text_of_the_program
    encrypted = @key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "a secret")
    place = Fairlead::Tls::Store.add("a secret")

    assert_equal @key.to_der, OpenSSL::PKey.read(PrivateKey.readable(encrypted, "a.key", place)).to_der
  end

  def test_what_is_wrong_is_told
    encrypted = @key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "a secret")
    { nil => /a\.key: the private key is encrypted/, "echo wrong" => /a\.key: the private key cannot be decrypted/,
      "exit 3" => /key_password_command has failed with exit status 3/,
      "kill -9 $$" => /key_password_command was ended by signal 9/,
      "yes" => /key_password_command prints more than 1024 bytes/ }.each do |command, message|
      assert_match(message, assert_raises(Fairlead::Tls::Invalid) { PrivateKey.readable(encrypted, "a.key", command) }.message)
    end
  end

  def test_a_command_that_does_not_end_is_ended
    encrypted = @key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "a secret")
    error = assert_raises(Fairlead::Tls::Invalid) { PrivateKey.readable(encrypted, "a.key", "exec sleep 600", patience: 0.2) }

    assert_equal "key_password_command has not ended after 0.2 s", error.message
    assert_raises(Errno::ECHILD) { Process.wait }
  end

  # A failing command is repeated, so each time another process would be left.
  def test_what_a_command_that_does_not_end_has_started_is_ended
    ["sleep 600 & echo $! > started; wait; true", "sleep 600 & echo $! > started", "sleep 600 > /dev/null & echo $! > started; exec sleep 600"]
      .each { |command| assert_left(command, false, /has not ended after 0.5 s/) }
  end

  def test_what_a_command_that_has_ended_leaves_behind_goes_on
    assert_left("sleep 600 > /dev/null & echo $! > started; echo 'a secret'", true)
  end

  def test_a_command_ends_with_the_thread_that_waits_for_it
    in_folder do
      thread = Thread.new { read("sleep 600 & echo $! > started; wait; true", patience: 600) }
      wait_until("the command") { File.size?("started") }
      thread.kill.join

      wait_until("its end") { !alive?(started) }
    end
  end

  private

  def read(command, patience: 0.5)
    PrivateKey.readable(@key.private_to_pem(OpenSSL::Cipher.new("aes-256-cbc"), "a secret"), "a.key", command, patience: patience)
  end

  # Asserts that the process with the id in the file "started" still runs, or does not.
  def assert_left(command, expected, message = nil)
    in_folder do
      message ? assert_match(message, assert_raises(Fairlead::Tls::Invalid) { read(command) }.message) : read(command)
      wait_until("the process") { alive?(started) == expected }
    ensure
      Process.kill(:KILL, started) if alive?(started)
    end
  end

  def started = Integer(File.read("started"), 10)
end
