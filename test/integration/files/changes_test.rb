# frozen_string_literal: true

require "test_helper"
require "support/file_serving"
require "support/processes"

# Files that change while the server runs, also while they are being sent: files in memory are never stale, and the body
# behind a head always has the announced length and comes from one version.
class FileChangesTest < Minitest::Test
  include Fairlead::Test::FileServing
  include Fairlead::Test::Processes

  CutOff = Fairlead::Test::HttpClient::CutOff

  SIZES = [10, 5000, 60_000, 70_000, 400_000].freeze

  # More than the sockets between the server and a narrow client can buffer.
  LARGE = 24_000_000

  # Changes of a file => code, given its path and its new content.
  CHANGES = {
    "replaced" => ->(path, content) { File.binwrite("#{path}.next", content) && File.rename("#{path}.next", path) },
    "changed in place" => ->(path, content) { File.binwrite(path, content) },
    "changed and set back in time" => ->(path, content) { File.binwrite(path, content) && File.utime(LONG_AGO, LONG_AGO, path) },
    "replaced by one of the same time" => lambda { |path, content|
      File.binwrite("#{path}.next", content)
      File.utime(LONG_AGO, LONG_AGO, "#{path}.next")
      File.rename("#{path}.next", path)
    }
  }.freeze

  def test_a_file_that_has_been_in_memory_for_long_and_then_changes
    files = SIZES.product(CHANGES.keys).to_h { |size, change| ["#{change.tr(" ", "-")}-#{size}", [size, CHANGES.fetch(change)]] }
    client = connect(server = serve_public(files.transform_values { |size, _| noise(size) }))
    settle(*files.keys.map { |name| server.path("public/#{name}") })

    3.times { files.each { |name, (size, _)| assert_file noise(size), client.get("/#{name}"), name } }
    files.each do |name, (size, change)|
      change.call(server.path("public/#{name}"), noise(size, seed: 1))
      3.times { assert_file noise(size, seed: 1), client.get("/#{name}"), name }
    end
  end

  def test_a_file_that_changes_all_the_time_and_keeps_its_size
    client = connect(server = serve_public({ "file.bin" => "first" }))

    SIZES.product([*0...20]).each do |size, round|
      change = CHANGES.keys[round % CHANGES.size]
      CHANGES.fetch(change).call(server.path("public/file.bin"), noise(size, seed: round))
      2.times { assert_file noise(size, seed: round), client.get("/file.bin"), "#{size} bytes, #{change}" }
    end
  end

  def test_versions_are_never_mixed
    [10, 5000, 30_000].each do |lines|
      server = serve_public({ "file.txt" => version(0, lines) })
      seen = while_replaced(server, lines) { fetch_versions(server, 10) }

      assert_equal [1], seen.map { |answer| answer.body.lines.uniq.size }.uniq
      assert_equal [1], seen.group_by { |answer| answer["etag"] }.values.map { |answers| answers.map(&:body).uniq.size }.uniq
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

  def test_a_file_that_has_been_in_memory_is_deleted
    client = connect(server = serve_public({ "file.txt" => "text", "large.bin" => noise(100_000) }))
    settle(server.path("public/file.txt"), server.path("public/large.bin"))
    3.times { assert_file "text", client.get("/file.txt") }
    3.times { assert_file noise(100_000), client.get("/large.bin") }
    FileUtils.rm([server.path("public/file.txt"), server.path("public/large.bin")])

    %w[/file.txt /large.bin].each { |path| assert_from_app client.get(path), path }
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
    server.write("next/app.js", "new")
    settle(server.path("public/assets/app.js"), server.path("next/app.js"))
    2.times { assert_file "old", client.get("/assets/app.js") }
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
    settle(server.path("public/1000.bin"))
    50.times { |number| client.get("/#{number + 1}.bin") }
    before = memory(server.serving_pid)

    3.times { 1000.times { |number| assert_file content, client.get("/#{number + 1}.bin") } }
    assert_operator memory(server.serving_pid) - before, :<, 20_000_000, "of 60 MB"
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

  # Lines that differ from all other versions, and so does their number.
  def version(number, lines) = "version #{format("%06d", number)}\n" * (lines + (number % 997))

  # Replaces a file with its next version repeatedly, until the block has returned.
  def while_replaced(server, lines)
    over = false
    writer = Thread.new do
      (1..).each { |number| over ? break : File.rename(server.write("next", version(number, lines)), server.path("public/file.txt")) }
    end
    yield
  ensure
    over = true
    writer.join
  end

  # Returns the responses of some concurrent clients that request often, until they have seen so many versions.
  def fetch_versions(server, count)
    answers = []
    clients = Array.new(3) { connect(server) }
    wait_until("#{count} versions") do
      answers.concat(clients.map { |client| Thread.new { Array.new(60) { client.get("/file.txt") } } }.flat_map(&:value))
      answers.map { |answer| answer["etag"] }.uniq.size >= count
    end
    answers
  end

  # Returns a server, and a client that is receiving a large file when the block changes it.
  def sending(target)
    @server = serve_public({ "large.bin" => noise(LARGE), "small.txt" => "small" })
    client = narrow_client(@server).request("GET", target)
    assert client.readable?(20)
    yield @server.path("public#{target}")
    [@server, client]
  end
end
