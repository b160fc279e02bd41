# frozen_string_literal: true

require "test_helper"
require "support/byte_ranges"
require "support/file_serving"

# Ranges of static files (RFC 9110 §14), for players, resumed downloads and PDF readers.
class FileRangesTest < Minitest::Test
  include Fairlead::Test::FileServing

  ByteRanges = Fairlead::Test::ByteRanges

  SIZES = { "/small.txt" => 1000, "/large.bin" => 400_000 }.freeze

  # Requested range => positions in the response, for a file of so many bytes.
  SINGLE = {
    "bytes=0-0" => ->(_) { [0, 0] }, "bytes=0-9" => ->(_) { [0, 9] }, "bytes=10-" => ->(size) { [10, size - 1] },
    "bytes=0-" => ->(size) { [0, size - 1] }, "bytes=-1" => ->(size) { [size - 1, size - 1] }, "bytes=-100" => ->(size) { [size - 100, size - 1] },
    "bytes=-99999999" => ->(size) { [0, size - 1] }, "bytes=5-99999999" => ->(size) { [5, size - 1] },
    "bytes=990-999999999999999999" => ->(size) { [990, size - 1] }, "BYTES=1-2" => ->(_) { [1, 2] },
    "bytes= 3-4" => ->(_) { [3, 4] }, "bytes=3-4 ,99999999-" => ->(_) { [3, 4] }
  }.freeze

  # Invalid ranges, or other units: the field is ignored.
  IGNORED = ["bytes=", "bytes=-", "bytes=a-b", "bytes=5-4", "bytes=1-2-3", "bytes=+1-2", "bytes=1", "lines=1-2", "bytes", "1-2",
             "bytes 1-2", "bytes=0x1-0x2", "bytes=1 - 2", "bytes=1-2;3-4", "bytes=1-2,x"].freeze

  # Positions that come as parts of one response: in the requested order, overlapping, and as many as allowed.
  SEVERAL = [
    [[0, 9], [20, 29]], [[500, 509], [0, 0], [100, 999]], [[0, 99], [50, 149]],
    Array.new(100) { |number| [number * 10, (number * 10) + 4] }
  ].freeze

  def setup
    @contents = SIZES.transform_values { |size| noise(size) }
    @client = connect(@server = serve_public(@contents.transform_keys { |path| path.delete_prefix("/") }))
  end

  def test_a_single_range
    each_file do |path, content|
      whole = @client.get(path)
      SINGLE.each do |value, positions|
        first, last = positions.call(content.bytesize)
        answer = @client.get(path, "range" => value)
        assert_equal [206, "bytes #{first}-#{last}/#{content.bytesize}"], [answer.status, answer["content-range"]], "#{path} #{value}"
        assert_equal content[first..last], answer.body, "#{path} #{value}"
        %w[etag last-modified content-type cache-control vary].each { |name| assert_equal [whole[name]], [answer[name]], "#{name} of #{value}" }
      end
    end
  end

  def test_what_is_no_range_is_ignored
    each_file do |path, content|
      IGNORED.each do |value|
        answer = @client.get(path, "range" => value)
        assert_file content, answer, "#{path} #{value}"
        assert_nil answer["content-range"]
      end
    end
  end

  def test_ranges_beyond_the_end_cannot_be_satisfied
    each_file do |path, content|
      ["bytes=#{content.bytesize}-", "bytes=99999999-99999999", "bytes=-0", "bytes=500000-,600000-700000", "bytes=#{"9" * 30}-"].each do |value|
        answer = @client.get(path, "range" => value)
        assert_equal [416, "bytes */#{content.bytesize}"], [answer.status, answer["content-range"]], "#{path} #{value}"
        refute_includes answer.body, content[0, 100]
      end
    end
  end

  def test_several_ranges_come_as_parts
    each_file do |path, content|
      type = @client.get(path)["content-type"]
      SEVERAL.each do |wanted|
        answer = @client.get(path, "range" => "bytes=#{wanted.map { |pair| pair.join("-") }.join(", ")}")
        assert_equal [206, nil], [answer.status, answer["content-range"]]
        parts = ByteRanges.parts(answer)
        assert_equal wanted, parts.map { |part| [part.from, part.to] }, path
        parts.each { |part| assert_equal [content[part.from..part.to], content.bytesize, type], [part.text, part.whole, part.type], path }
      end
    end
  end

  def test_open_and_suffix_ranges_as_parts
    each_file do |path, content|
      parts = ByteRanges.parts(@client.get(path, "range" => "bytes=0-1,-2,#{content.bytesize - 3}-,99999999-"))
      assert_equal [content[0, 2], content[-2..], content[-3..]], parts.map(&:text)
    end
  end

  def test_too_much_of_them_gets_the_whole_file
    each_file do |path, content|
      ["bytes=#{(["0-0"] * 101).join(",")}", "bytes=0-,0-", "bytes=#{(["0-"] * 50).join(",")}"].each do |value|
        assert_file content, @client.get(path, "range" => value), "#{path} #{value[0, 50]}"
      end
    end
  end

  def test_large_parts_arrive_whole
    content = noise(9_000_000, seed: 8)
    @server.write("public/huge.bin", content)
    answer = @client.get("/huge.bin", "range" => "bytes=0-3999999,4000001-8999998")

    assert_equal [content[0..3_999_999], content[4_000_001..8_999_998]], ByteRanges.parts(answer).map(&:text)
    assert_equal content[1_000_000..7_999_999], @client.get("/huge.bin", "range" => "bytes=1000000-7999999").body
  end

  def test_positions_beyond_four_gigabytes
    File.open(@server.path("public/huge.bin"), "wb") do |file|
      file.pwrite("in the middle", 4_294_967_290)
      file.pwrite("at the end", 5_999_999_990)
    end

    assert_equal "in the middle", @client.get("/huge.bin", "range" => "bytes=4294967290-4294967302").body
    assert_equal "at the end", @client.get("/huge.bin", "range" => "bytes=5999999990-").body
    parts = ByteRanges.parts(@client.get("/huge.bin", "range" => "bytes=-3,4294967290-4294967291,0-0"))
    assert_equal [%w[end in] + ["\0"], [6_000_000_000]], [parts.map(&:text), parts.map(&:whole).uniq]
    assert_equal "6000000000", @client.request("HEAD", "/huge.bin").answer(to: "HEAD")["content-length"]
  end

  def test_a_part_is_sent_only_of_what_the_client_has_begun
    each_file do |path, content|
      etag = @client.get(path)["etag"]
      [etag, LONG_AGO_HTTP].each { |value| assert_equal 206, @client.get(path, "range" => "bytes=1-2", "if-range" => value).status, value }
      ['"other"', "W/#{etag}", "Thu, 29 Feb 2024 11:59:59 GMT", "Thu, 29 Feb 2024 12:00:01 GMT", "x"].each do |value|
        assert_file content, @client.get(path, "range" => "bytes=1-2", "if-range" => value), value
        assert_file content, @client.get(path, "range" => "bytes=99999999-", "if-range" => value), value
      end
      assert_file content, @client.get(path, "if-range" => etag)
    end
  end

  def test_conditions_come_before_ranges
    each_file do |path, _|
      etag = @client.get(path)["etag"]
      assert_equal 304, @client.get(path, "range" => "bytes=1-2", "if-none-match" => etag).status
      assert_equal 412, @client.get(path, "range" => "bytes=1-2", "if-match" => '"other"').status
      assert_equal 206, @client.get(path, "range" => "bytes=1-2", "if-match" => etag).status
      assert_equal 304, @client.get(path, "range" => "bytes=99999999-", "if-none-match" => etag).status
    end
  end

  # RFC 9110 §14.2: a server must ignore Range for any other method than GET.
  def test_head_knows_no_ranges
    each_file do |path, content|
      ["bytes=1-2", "bytes=99999999-", "bytes=0-1,4-5"].each do |value|
        answer = @client.request("HEAD", path, { "range" => value }).answer(to: "HEAD")
        assert_equal [200, content.bytesize.to_s, nil], [answer.status, answer["content-length"], answer["content-range"]], "#{path} #{value}"
      end
    end
  end

  def test_an_empty_file_has_no_ranges
    @server.write("public/empty.txt", "")

    ["bytes=0-", "bytes=0-0", "bytes=-1"].each { |value| assert_file "", @client.get("/empty.txt", "range" => value), value }
  end

  def test_parts_put_together_are_the_file
    content = @contents["/large.bin"]
    parts = (0...content.bytesize).step(70_001).map { |start| @client.get("/large.bin", "range" => "bytes=#{start}-#{start + 70_000}").body }

    assert_equal content, parts.join
  end

  private

  def each_file(&block) = @contents.each(&block)
end
