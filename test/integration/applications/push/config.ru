# frozen_string_literal: true

# News by subject: a client listens to the subjects of its path (/news.* or /news.>), and sends "subject text".
require "fairlead/compat/agoo"

# Publishes news.
class News
  def call(env)
    return [404, {}, []] if env["rack.upgrade?"].nil?

    env["rack.upgrade"] = self
    [200, {}, []]
  end

  def on_open(client)
    client.subscribe(client.env["PATH_INFO"].delete_prefix("/"))
    client.write("welcome")
  end

  def on_message(client, data)
    subject, text = data.split(" ", 2)
    return client.unsubscribe if subject == "enough"

    client.publish(subject, text)
  end
end

Thread.new do
  (0..).each do |beat|
    sleep 0.2
    Agoo.publish("time.beat", beat)
  end
end

run News.new
