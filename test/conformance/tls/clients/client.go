// Go's net/http and crypto/tls. Says what it has met as a line of JSON; see ../clients_test.rb. Its library has no WebSocket:
// the handshake and the frames are written here.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

var piece = strings.Repeat("0123456789abcdef", 65536)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func read(response *http.Response) string {
	defer response.Body.Close()
	return string(must(io.ReadAll(response.Body)))
}

func digest(body io.ReadCloser) string {
	defer body.Close()
	sum := sha256.New()
	must(io.Copy(sum, body))
	return fmt.Sprintf("%x", sum.Sum(nil))
}

func events(client *http.Client, base string) []string {
	request := must(http.NewRequest("GET", base+"/events", nil))
	request.Header.Set("Accept", "text/event-stream")
	response := must(client.Do(request))
	defer response.Body.Close()
	seen := []string{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data := lines.Text(); strings.HasPrefix(data, "data:") {
			seen = append(seen, strings.TrimSpace(data[5:]))
		}
	}
	return seen
}

// One masked frame there, with a mask of zeros, and what comes back in however many.
func echo(config *tls.Config, host string) bool {
	socket := must(tls.Dial("tcp", host, config))
	defer socket.Close()
	fmt.Fprintf(socket, "GET /echo HTTP/1.1\r\nhost: %s\r\nupgrade: websocket\r\nconnection: upgrade\r\n"+
		"sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", host)
	reader := bufio.NewReader(socket)
	if response := must(http.ReadResponse(reader, nil)); response.StatusCode != 101 {
		return false
	}
	frame := binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, uint64(len(piece)))
	must(socket.Write(append(append(frame, 0, 0, 0, 0), piece...)))
	return message(reader) == piece
}

func message(reader io.Reader) string {
	var all bytes.Buffer
	for last := false; !last; {
		head := [2]byte{}
		must(io.ReadFull(reader, head[:]))
		last = head[0]&0x80 != 0
		length := uint64(head[1] & 0x7f)
		if length >= 126 {
			wide := make([]byte, map[uint64]int{126: 2, 127: 8}[length])
			must(io.ReadFull(reader, wide))
			length = binary.BigEndian.Uint64(append(make([]byte, 8-len(wide)), wide...))
		}
		must(io.CopyN(&all, reader, int64(length)))
	}
	return all.String()
}

func main() {
	time.AfterFunc(time.Minute, func() { os.Exit(1) })
	base := os.Args[1]
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(os.Args[2])))
	config := &tls.Config{RootCAs: pool, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	seen := map[string]any{
		"get":        read(must(client.Get(base))),
		"version":    read(must(client.Get(base + "/version"))),
		"posted":     read(must(client.Post(base+"/digest", "text/plain", strings.NewReader(piece)))),
		"downloaded": digest(must(client.Get(base + "/large")).Body),
		"events":     events(client, base),
		"echo":       echo(&tls.Config{RootCAs: pool}, must(url.Parse(base)).Host),
	}
	client.CloseIdleConnections()
	again := must(client.Get(base))
	read(again)
	seen["resumed"] = again.TLS.DidResume
	fmt.Println(string(must(json.Marshal(seen))))
}
