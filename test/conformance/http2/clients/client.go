// Go's net/http. Says what it has met as a line of JSON; see ../clients_test.rb.
package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var (
	base   = os.Args[1]
	body   = bytes.Repeat([]byte("0123456789abcdef"), 4*65536)
	client *http.Client
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func ask(request *http.Request) (*http.Response, []byte) {
	response := must(client.Do(request))
	defer response.Body.Close()
	return response, must(io.ReadAll(response.Body))
}

func get(path string) (*http.Response, []byte) {
	return ask(must(http.NewRequest("GET", base+path, nil)))
}

func text(path string) string {
	_, body := get(path)
	return string(body)
}

func status(path string) int {
	response, _ := get(path)
	return response.StatusCode
}

func sha256sum(path string) string {
	_, body := get(path)
	return fmt.Sprintf("%x", sha256.Sum256(body))
}

func head() []any {
	response, body := ask(must(http.NewRequest("HEAD", base+"/", nil)))
	return []any{response.StatusCode, response.Header.Get("Content-Type"), len(body)}
}

// The response to a large body; whether the client was asked to go on, if it waits for that.
func post(expects bool) (string, bool) {
	request := must(http.NewRequest("POST", base+"/digest", bytes.NewReader(body)))
	var continued atomic.Bool
	if expects {
		request.Header.Set("Expect", "100-continue")
		trace := &httptrace.ClientTrace{Got100Continue: func() { continued.Store(true) }}
		request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	}
	_, digest := ask(request)
	return string(digest), continued.Load()
}

func hinted() (string, []string) {
	hints := []string{}
	trace := &httptrace.ClientTrace{Got1xxResponse: func(status int, fields textproto.MIMEHeader) error {
		if status == 103 {
			hints = append(hints, fields.Get("Link"))
		}
		return nil
	}}
	request := must(http.NewRequest("GET", base+"/hinted", nil))
	_, body := ask(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	return string(body), hints
}

func events() []string {
	request := must(http.NewRequest("GET", base+"/events", nil))
	request.Header.Set("Accept", "text/event-stream")
	_, body := ask(request)
	seen := []string{}
	for _, match := range regexp.MustCompile(`(?m)^data: ?(.*)$`).FindAllSubmatch(body, -1) {
		seen = append(seen, string(match[1]))
	}
	return seen
}

func parallel() int32 {
	var right atomic.Int32
	var all sync.WaitGroup
	for number := 0; number < 100; number++ {
		all.Add(1)
		go func(number string) {
			defer all.Done()
			if text("/slow?"+number) == number {
				right.Add(1)
			}
		}(strconv.Itoa(number))
	}
	all.Wait()
	return right.Load()
}

func main() {
	time.AfterFunc(time.Minute, func() { os.Exit(1) })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(os.Args[2])))
	client = &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool}, ExpectContinueTimeout: 30 * time.Second,
	}}
	seen := map[string]any{
		"get": text("/"), "protocol": text("/protocol"), "head": head(), "missing": status("/missing"), "moved": text("/moved"),
		"large": sha256sum("/large"), "pieces": sha256sum("/pieces"), "events": events(), "parallel": parallel(),
	}
	seen["posted"], _ = post(false)
	seen["expected"], seen["continued"] = post(true)
	seen["hinted"], seen["hints"] = hinted()
	fmt.Println(string(must(json.Marshal(seen))))
}
