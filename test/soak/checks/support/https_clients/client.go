// Go's net/http: a transport with one connection for each client. See ../https_clients.rb.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type report struct {
	Answered int      `json:"answered"`
	Resumed  int      `json:"resumed"`
	Faults   []string `json:"faults"`
}

func ask(client *http.Client, url string) (string, bool) {
	response, err := client.Get(url)
	if err != nil {
		return err.Error(), false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error(), false
	}
	if response.Close {
		return "connection: close", false
	}
	return string(body), response.TLS.DidResume
}

func askAll(clients []*http.Client, url string) report {
	all := report{Faults: []string{}}
	var lock sync.Mutex
	var group sync.WaitGroup
	for _, client := range clients {
		group.Add(1)
		go func(client *http.Client) {
			defer group.Done()
			body, resumed := ask(client, url)
			lock.Lock()
			defer lock.Unlock()
			if resumed {
				all.Resumed++
			}
			if body == "hello" {
				all.Answered++
			} else if len(all.Faults) < 5 {
				all.Faults = append(all.Faults, body)
			}
		}(client)
	}
	group.Wait()
	return all
}

func main() {
	url := os.Args[1]
	authority, _ := os.ReadFile(os.Args[2])
	count, _ := strconv.Atoi(os.Args[3])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	clients := make([]*http.Client, count)
	for index := range clients {
		version := []uint16{tls.VersionTLS12, tls.VersionTLS13}[index%2]
		config := &tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		clients[index] = &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: time.Minute}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "renew" {
			for _, client := range clients {
				client.CloseIdleConnections()
			}
		}
		line, _ := json.Marshal(askAll(clients, url))
		fmt.Println(string(line))
	}
}
