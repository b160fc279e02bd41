# frozen_string_literal: true

require "test_helper"

class AcmeSuggestionTest < Minitest::Test
  DAY = 86_400
  NOW = Time.at(1_800_000_000)

  Certificate = Struct.new(:identifier, :begins_at, :life, :fraction)

  def setup
    @suggestion = Fairlead::Acme::Suggestion.new
    @certificate = Certificate.new({ serial: "a" }, NOW - (10 * DAY), 90 * DAY, Rational(1, 2))
  end

  def test_it_is_in_the_middle_of_the_window_if_the_certificate_says_so
    assert_equal [false, true], [0, 60].map { |passed| @suggestion.due?(@certificate, NOW + passed) }
    @suggestion.take(@certificate, (NOW + 100).to_i, (NOW + 200).to_i, 7200, NOW)

    assert_equal NOW + 150, @suggestion.at
    assert_equal [false, true], [7199, 7200].map { |passed| @suggestion.due?(@certificate, NOW + passed) }
  end

  def test_a_new_certificate_has_none_and_is_asked_about_an_hour_later
    @suggestion.due?(@certificate, NOW)
    @suggestion.take(@certificate, (NOW - 200).to_i, (NOW - 100).to_i, 7200, NOW)
    renewed = Certificate.new({ serial: "b" }, NOW, 90 * DAY, 0)

    assert_equal [false, false, true], [0, 3599, 3600].map { |passed| @suggestion.due?(renewed, NOW + passed) }
    assert_nil @suggestion.at
  end

  def test_nothing_is_renewed_more_than_once_a_day_or_three_times_in_its_life
    [[90 * DAY, DAY], [6 * 3600, 2 * 3600]].each do |life, pause|
      certificate = Certificate.new({ serial: life }, NOW, life, 1)
      @suggestion.due?(certificate, NOW)
      @suggestion.take(certificate, 0, 0, 0, NOW)

      assert_equal NOW + pause, @suggestion.at
      refute @suggestion.due?(certificate, NOW + 3599)
    end
  end

  def test_windows_that_are_none_suggest_nothing
    @suggestion.due?(@certificate, NOW)
    [[200, 100], [2**62, 2**63]].each { |first, last| @suggestion.take(@certificate, first, last, 2**64, NOW) }

    assert_operator @suggestion.at || NOW, :>=, NOW
    assert @suggestion.due?(@certificate, NOW + DAY)
  end

  def test_an_authority_that_does_not_answer_is_asked_again_a_day_later
    @suggestion.due?(@certificate, NOW)
    @suggestion.none(NOW)

    assert_equal [false, true], [DAY - 1, DAY].map { |passed| @suggestion.due?(@certificate, NOW + passed) }
    refute @suggestion.due?(Certificate.new(nil, NOW, DAY, 0), NOW + DAY)
  end
end
