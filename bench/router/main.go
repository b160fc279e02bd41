// A router as hosting platforms have one: it passes each request on to one of several servers, chosen at random, over
// connections that are kept or not, with HTTP/1.1 or with HTTP/2 in cleartext. It knows nothing of how busy a server is.
//
//	router [-http2] [-keep-alive=false] http://127.0.0.1:PORT...
//
// It listens on a free port of 127.0.0.1, prints the address, and ends with its standard input.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"time"
)

// Idle connections that are kept to each server; more than there are clients.
const idleConnections = 1000

func main() {
	log.SetFlags(0)
	http2 := flag.Bool("http2", false, "HTTP/2 with prior knowledge to the servers, instead of HTTP/1.1")
	keepAlive := flag.Bool("keep-alive", true, "keep connections to the servers")
	flag.Parse()
	origins, err := parse(flag.Args())
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	go endWithInput()
	log.Fatal(http.Serve(listener, router(origins, transport(*http2, *keepAlive))))
}

func parse(arguments []string) ([]*url.URL, error) {
	if len(arguments) == 0 {
		return nil, fmt.Errorf("no servers to pass requests on to")
	}
	origins := make([]*url.URL, len(arguments))
	for i, argument := range arguments {
		origin, err := url.Parse(argument)
		if err != nil {
			return nil, err
		}
		origins[i] = origin
	}
	return origins, nil
}

func router(origins []*url.URL, transport http.RoundTripper) http.Handler {
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(origins[rand.IntN(len(origins))])
			request.SetXForwarded()
		},
		ErrorHandler: refuse,
	}
}

// A client that has gone away is no news.
func refuse(response http.ResponseWriter, request *http.Request, err error) {
	if request.Context().Err() == nil {
		log.Print(err)
	}
	response.WriteHeader(http.StatusBadGateway)
}

func transport(http2, keepAlive bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	return &http.Transport{
		Protocols:           protocols,
		DisableKeepAlives:   !keepAlive,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     90 * time.Second,
	}
}

// Whoever started the router holds the other end of its standard input, so that it never outlives them.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}
