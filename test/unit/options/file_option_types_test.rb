# frozen_string_literal: true

require "test_helper"

class FileOptionTypesTest < Minitest::Test
  include Fairlead::Test::Folders

  Types = Fairlead::Options::Types

  def test_a_cache_rule_is_a_glob_and_a_field_value
    {
      "/fonts/*: public, max-age=604800" => ["/fonts/*", "public, max-age=604800"],
      "*.html:no-store" => ["*.html", "no-store"],
      " /a b? :  private=\"x:y\"\t" => ["/a b?", "private=\"x:y\""],
      "/größe: no-cache" => ["/größe", "no-cache"]
    }.each { |text, rule| assert_equal rule, Types::CacheRule.new("RULE").parse(text), text }
  end

  def test_a_cache_rule_cannot_smuggle_a_field
    refused Types::CacheRule.new("RULE"),
            "/a: no-cache\r\nset-cookie: x=1", "/a: no-cache\nx", "/a: no\x7fcache", "/a: nö", "/a: \e[31m", "/a: x\0"
  end

  def test_a_cache_rule_has_both_parts
    refused Types::CacheRule.new("RULE"), "/a", "/a:", "/a: ", ": no-cache", "a: no-cache", "", " ", "/\xFF: no-cache", 5, nil
  end

  def test_a_cache_rule_is_shown_as_it_is_given
    rule = Types::CacheRule.new("RULE")

    assert_equal "/fonts/*: no-cache", rule.format(rule.parse("/fonts/*:no-cache"))
  end

  def test_a_sendfile_root_is_a_folder_with_or_without_a_prefix
    in_folder("files/a" => "", "x=y/a" => "") do |folder|
      {
        "files" => [nil, "#{folder}/files"], "#{folder}/files/" => [nil, "#{folder}/files"], "x=y" => [nil, "#{folder}/x=y"],
        "/internal/=files" => ["/internal/", "#{folder}/files"], "/internal=files" => ["/internal/", "#{folder}/files"],
        "/=files" => ["/", "#{folder}/files"], "/a/b-1.0/=x=y" => ["/a/b-1.0/", "#{folder}/x=y"]
      }.each { |text, root| assert_equal root, root(text), text }
    end
  end

  def test_a_sendfile_root_has_to_be_there_and_its_prefix_a_path
    in_folder("files/a" => "") do
      refused Types::SendfileRoot.new("ROOT"),
              "nowhere", "files/a", "/internal/=nowhere", "/internal/=", "=files", "internal/=files", "/in ternal/=files",
              "/%69/=files", "//=files", "/a//b=files", "/a?b=files", "", "\0", nil
    end
  end

  def test_a_sendfile_root_is_shown_as_it_is_given
    in_folder("files/a" => "") do |folder|
      type = Types::SendfileRoot.new("ROOT")

      assert_equal ["#{folder}/files", "/internal/=#{folder}/files"], (%w[files /internal=files].map { |text| type.format(root(text)) })
    end
  end

  def test_an_error_page_has_statuses_and_a_file
    type = Types::ErrorPage.new("PAGE")
    in_folder do |folder|
      assert_equal [[503], "#{folder}/a=b.html"], resolved(type, "503=a=b.html")
      assert_equal "502,503=/a.html", type.format(resolved(type, "502,503=/a.html"))
    end
    refused type, "503", "503=", "=a", "200=a", "600=a", "503,=a", "503 504=a", "a=503", "", nil
  end

  def test_an_error_page_is_a_small_file
    in_folder("small" => "a", "large" => "a" * 65_537) do
      assert_equal [nil, "large is larger than 64 KiB", ". is no file that can be read", "none is no file that can be read"],
                   (%w[small large . none].map { |path| Types::ErrorPage.reason_against(path) })
    end
  end

  def test_a_media_type_may_stand_for_all_of_its_kind
    type = Types::MediaType.new("TYPE")

    { "text/*" => "text/*", "*/*" => "*/*", "Application/JSON" => "application/json", "application/vnd.api+json" => "application/vnd.api+json" }
      .each { |text, pattern| assert_equal pattern, type.parse(text) }
    refused type, "text", "text/", "/plain", "*/plain", "*", "text/*; q=1", "text/plain; charset=utf-8", "text/plain, text/css", "", nil
  end

  private

  def root(text) = resolved(Types::SendfileRoot.new("ROOT"), text)

  def resolved(type, text) = type.resolve(type.parse(text)) { Dir.pwd }

  def refused(type, *values)
    values.each do |value|
      error = assert_raises(Types::Invalid, "#{value.inspect} was accepted") { resolved(type, value) }
      assert_includes error.message, "must be "
    end
  end
end
