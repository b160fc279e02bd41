// Go's crypto/tls and the responses of net/http: a client keeps its connection. (A transport of net/http closes it if the program gets no
// processor for 50 ms.) See ../https_clients.rb.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"
)

type client struct {
	config *tls.Config
	conn   *tls.Conn
	reader *bufio.Reader
}

type report struct {
	Answered int      `json:"answered"`
	Resumed  int      `json:"resumed"`
	Faults   []string `json:"faults"`
}

func (c *client) renew() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Returns the body or a fault, and whether the session was resumed. A fault ends the connection.
func (c *client) ask(host string) (string, bool) {
	body, err := c.request(host)
	if err != nil {
		c.renew()
		return err.Error(), false
	}
	return body, c.conn.ConnectionState().DidResume
}

func (c *client) request(host string) (string, error) {
	if c.conn == nil {
		conn, err := tls.Dial("tcp", host, c.config)
		if err != nil {
			return "", err
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	c.conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(c.conn, "GET / HTTP/1.1\r\nhost: %s\r\n\r\n", host); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if response.Close {
		return "", fmt.Errorf("connection: close")
	}
	return string(body), err
}

func askAll(clients []*client, host string) report {
	all := report{Faults: []string{}}
	var lock sync.Mutex
	var group sync.WaitGroup
	for _, one := range clients {
		group.Add(1)
		go func(one *client) {
			defer group.Done()
			body, resumed := one.ask(host)
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
		}(one)
	}
	group.Wait()
	return all
}

func main() {
	address, _ := url.Parse(os.Args[1])
	authority, _ := os.ReadFile(os.Args[2])
	count, _ := strconv.Atoi(os.Args[3])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	clients := make([]*client, count)
	for index := range clients {
		version := []uint16{tls.VersionTLS12, tls.VersionTLS13}[index%2]
		config := &tls.Config{RootCAs: pool, MinVersion: version, MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		clients[index] = &client{config: config}
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() == "renew" {
			for _, one := range clients {
				one.renew()
			}
		}
		line, _ := json.Marshal(askAll(clients, address.Host))
		fmt.Println(string(line))
	}
}
