# frozen_string_literal: true

require "test_helper"
require "support/file_serving"
require "support/processes"

# Files that change while the server runs, also while they are being sent: what is kept in memory is never stale, and a
# head that promised so many bytes is never followed by other ones.
class FileChangesTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::Processes

  CutOff = Fairlead::Test::HttpClient::CutOff

  SIZES = [10, 5000, 60_000, 70_000, 400_000].freeze

  # More than the sockets between the server and a narrow client can hold.
  LARGE = 24_000_000

  def test_a_file_that_is_replaced
    each_size do |client, path, size|
      5.times do |round|
        content = noise(size, seed: round)
        File.rename(@server.write("next", content), path)
        2.times { assert_file content, client.get("/file.bin"), "#{size} bytes, round #{round}" }
      end
    end
  end

  def test_a_file_that_is_changed_in_place_and_keeps_its_size
    each_size do |client, path, size|
      50.times do |round|
        content = noise(size, seed: round)
        File.binwrite(path, content)
        2.times { assert_equal content, client.get("/file.bin").body, "#{size} bytes, round #{round}" }
      end
    end
  end

  def test_a_file_whose_time_is_set_back_to_what_it_was
    each_size do |client, path, size|
      5.times do |round|
        content = noise(size, seed: round)
        File.binwrite(path, content)
        age(path)
        assert_file content, client.get("/file.bin"), "#{size} bytes, round #{round}"
      end
    end
  end

  def test_a_file_that_is_written_bit_by_bit
    client = connect(server = serve_public({ "log.txt" => "" }))

    File.open(server.path("public/log.txt"), "a") do |file|
      file.sync = true
      100.times do |round|
        file.write("line #{round}\n")
        assert_file File.binread(file.path), client.get("/log.txt")
      end
    end
  end

  def test_a_file_that_comes_and_goes
    client = connect(server = serve_public({}))

    3.times do |round|
      assert_from_app client.get("/sub/file.txt")
      server.write("public/sub/file.txt", "round #{round}")
      2.times { assert_file "round #{round}", client.get("/sub/file.txt") }
      FileUtils.rm_r(server.path("public/sub"))
    end
  end

  def test_a_folder_that_is_replaced
    client = connect(server = serve_public({ "assets/app.js" => "old" }))
    2.times { assert_file "old", client.get("/assets/app.js") }
    server.write("next/app.js", "new")
    File.rename(server.path("public/assets"), server.path("previous"))
    File.rename(server.path("next"), server.path("public/assets"))

    assert_file "new", client.get("/assets/app.js")
  end

  def test_the_same_without_memory
    client = connect(server = serve_public({ "file.txt" => "first" }, "--file-cache-bytes", "0"))

    2.times { assert_file "first", client.get("/file.txt") }
    server.write("public/file.txt", "other")
    2.times { assert_file "other", client.get("/file.txt") }
  end

  def test_what_is_kept_in_memory_is_bounded
    content = noise(60_000)
    server = serve_public((1..1000).to_h { |number| ["#{number}.bin", content] }, "--file-cache-bytes", "2m")
    client = connect(server)
    50.times { |number| client.get("/#{number + 1}.bin") }
    before = memory(server.pid)

    3.times { 1000.times { |number| assert_file content, client.get("/#{number + 1}.bin") } }
    assert_operator memory(server.pid) - before, :<, 20_000_000, "of 60 MB"
  end

  def test_a_file_that_shrinks_while_it_is_sent_cuts_its_connection_only
    server, client = sending("/large.bin") do |path|
      File.truncate(path, 1_000_000)
    end
    bystander = connect(server)

    assert_file "small", bystander.get("/small.txt")
    assert_raises(CutOff) { client.answer }
    assert_file "small", bystander.get("/small.txt")
    assert_equal 1_000_000, bystander.get("/large.bin").body.bytesize
  end

  def test_a_file_that_grows_while_it_is_sent_is_sent_as_it_was_announced
    server, client = sending("/large.bin") do |path|
      File.open(path, "ab") { |file| file.write(noise(5_000_000, seed: 1)) }
    end
    client.request("GET", "/small.txt")

    assert_file noise(LARGE), client.answer
    assert_file "small", client.answer
    assert_equal LARGE + 5_000_000, connect(server).get("/large.bin").body.bytesize
  end

  def test_a_file_that_is_deleted_while_it_is_sent_is_sent_whole
    server, client = sending("/large.bin") { |path| File.delete(path) }

    assert_from_app connect(server).get("/large.bin")
    assert_file noise(LARGE), client.answer
  end

  def test_a_file_that_is_replaced_while_it_is_sent_is_sent_as_it_was
    server, client = sending("/large.bin") do |path|
      File.rename(@server.write("next", "new"), path)
    end

    assert_file "new", connect(server).get("/large.bin")
    assert_file noise(LARGE), client.answer
  end

  private

  # Yields a client, the path of a file and its size, for files that are kept in memory and for some that are not.
  def each_size
    @server = serve_public({ "file.bin" => "first" })
    client = connect(@server)
    SIZES.each { |size| yield client, @server.path("public/file.bin"), size }
  end

  # A server, and a client that is receiving a large file when the block changes it.
  def sending(target)
    @server = serve_public({ "large.bin" => noise(LARGE), "small.txt" => "small" })
    client = narrow_client(@server).request("GET", target)
    assert client.readable?(20)
    yield @server.path("public#{target}")
    [@server, client]
  end
end
