//! What `--help` prints.

pub(crate) const HELP: &str = "\
Usage: fairlead bench URL [options]

http://host[:port][/path], unix:///path/to.sock   requests over several connections: what each of them got
ws://host[:port][/path]                           WebSockets: messages that come back, one at a time on each
ws://… --broadcast                                one publishes, all receive: deliveries, losses, order
http://… --sse --publish http://…/publish         the same with server-sent events; publishes by POST
ws://… --idle, http://… --sse --idle              opens connections and only holds them
https://…, wss://…                                the same over TLS; handshakes are counted and timed, too
http://… --http2, https://… --http2               requests over HTTP/2, several streams at a time on each connection

How much:
  -c, --connections N     connections: clients, sockets or subscribers (10)
  -d, --duration SEC      how long to measure, or to hold (4)
  -n, --requests N        stop after N requests or echoes in total, shared by all connections
      --warmup SEC        run this long before measuring (0)
      --rate R            send R requests or publish R messages per second in total, whether answers come or not
                          (open loop); without it, as soon as the one before is done
      --timeout SEC       give up on a request, a handshake, an echo, or when nothing is delivered (10)

HTTP/2:
      --http2             h2 over TLS, which the server has to agree on (ALPN); over http and unix with prior knowledge (h2c)
      --streams N         streams open at the same time on each connection (1: as many requests at a time as with HTTP/1.1),
                          never more than the server allows
      --streams LIST      connections that differ, instead of --connections: STREAMS or STREAMSxCONNECTIONS, with commas.
                          100,1x10 is one connection with 100 streams and ten with one; the report shows what each got

Requests:
      --pipeline N        requests under way on one connection at a time (1); HTTP/1.1 only
      --no-keep-alive     a new connection for every request; HTTP/1.1 only
      --threads N         threads that send (1)
  -m, --method METHOD     (GET, or POST with a body)
      --body TEXT         @FILE sends the file, @- standard input
      --path PATH         request target, for unix URLs (/)
      --mix FILE          each request is one of the lines of FILE, drawn at random by weight: WEIGHT NAME METHOD TARGET [BODY];
                          those with the same name are reported together
  -H, --header 'N: v'     repeatable; replaces a field of the same name that would be sent otherwise; also for handshakes

TLS (https, wss):
      --cacert FILE       trust certificates that come from those in FILE (PEM), instead of those that the system trusts
  -k, --insecure          trust anybody: neither the certificate nor its signature is checked
      --cert FILE         the client's certificate (PEM), and its key unless --key names another file
      --key FILE          the key of --cert
      --tls-version V     1.2 or 1.3 only
      --resume            a connection that replaces another one resumes its session; without it (--no-resume) each
                          handshake is a full one. With --no-keep-alive this measures handshakes

WebSockets and event streams:
      --size BYTES        of a message (64)
      --text, --binary    type of the messages (text)
      --deflate           offer permessage-deflate, and use it where it was accepted
      --protocol NAME     offer a subprotocol
      --hello TEXT        message sent after the handshake, as to subscribe
      --welcome TEXT      only after a message containing TEXT has come
      --ready TEXT        a connection counts as subscribed when a message containing TEXT has come
      --messages N        messages to broadcast (200)
      --publishers N      connections that publish them (1)
      --template TEXT     what publishers send, with %s in place of the message
      --publish URL       publish by POST to this URL, the message as its body

What to print:
      --json              one JSON document instead of text
  -q, --quiet             neither progress nor the list of connections
  -h, --help

Exit status: 0 every answer was 2xx or 3xx, every message arrived once and in order, no connection was lost;
1 wrong usage or unreachable; 2 anything else.
";
